#include "textflag.h"

#define SYS_clone 56

// func clone(flags uintptr, stack unsafe.Pointer, entry Entry, arg unsafe.Pointer) int
TEXT ·clone(SB), NOSPLIT, $0-40
	MOVQ flags+0(FP), DI
	MOVQ stack+8(FP), SI
	MOVQ entry+16(FP), R12
	MOVQ arg+24(FP), R13
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $SYS_clone, AX
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ AX, ret+32(FP)
	RET

child:
	// As Go's ABIInternal has it: the argument in AX, zero in X15.
	XORL  BP, BP
	XORPS X15, X15
	MOVQ  R13, AX
	CALL  R12
	INT   $3
