#include "textflag.h"

// func int80(number uintptr) int32
TEXT ·int80(SB), NOSPLIT, $0-12
	MOVQ number+0(FP), AX
	MOVQ $0, BX
	MOVQ $0, CX
	MOVQ $0, DX
	INT  $0x80
	MOVL AX, ret+8(FP)
	RET
