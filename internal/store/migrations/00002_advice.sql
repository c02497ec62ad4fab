-- +goose Up

-- What the command's caller is told to do about how it ended, in words; made
-- when it ended, of numbers that are not known later.
ALTER TABLE commands ADD COLUMN advice TEXT NOT NULL DEFAULT '';
