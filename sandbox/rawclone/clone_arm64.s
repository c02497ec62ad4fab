#include "textflag.h"

#define SYS_clone 220

// func clone(flags uintptr, stack unsafe.Pointer, entry Entry, arg unsafe.Pointer) int
TEXT ·clone(SB), NOSPLIT, $0-40
	MOVD flags+0(FP), R0
	MOVD stack+8(FP), R1
	MOVD entry+16(FP), R19
	MOVD arg+24(FP), R20
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $SYS_clone, R8
	SVC
	CBZ  R0, child
	MOVD R0, ret+32(FP)
	RET

child:
	// As Go's ABIInternal has it: the argument in R0.
	MOVD R20, R0
	CALL (R19)
	BRK
