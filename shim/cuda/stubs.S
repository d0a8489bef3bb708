/*
 * stubs.S - functions that count a call, and go on in another one that knows nothing of it: no
 * argument's register is touched, and the stack is as it came. Slot n of gps_unwatched_real is where
 * stub n goes on, slot n of gps_unwatched_counters points to what it counts.
 */
#define STUBS 16

    .macro SLOTS name
    .globl \name
    .hidden \name
    .p2align 3
\name:
    .skip 8*STUBS
    .endm

    .bss
    SLOTS gps_unwatched_real
    SLOTS gps_unwatched_counters

    .text
    .globl gps_unwatched_stubs
    .hidden gps_unwatched_stubs
    .set n, 0

#if defined(__x86_64__)

    .p2align 5
gps_unwatched_stubs:
    .rept STUBS
    .p2align 5
    .cfi_startproc
    endbr64
    mov gps_unwatched_counters+8*n(%rip), %r11
    lock incq (%r11)
    jmp *gps_unwatched_real+8*n(%rip)
    .cfi_endproc
    .set n, n+1
    .endr
    .p2align 5

    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0 /* IBT and shadow stack: we only jump */

#elif defined(__aarch64__)

    .p2align 6
gps_unwatched_stubs:
    .rept STUBS
    .p2align 6
    .cfi_startproc
    hint #34 /* bti c */
    adrp x16, gps_unwatched_counters+8*n
    ldr x16, [x16, #:lo12:gps_unwatched_counters+8*n]
1:  ldxr x17, [x16]
    add x17, x17, #1
    stxr w9, x17, [x16]
    cbnz w9, 1b
    adrp x16, gps_unwatched_real+8*n
    ldr x16, [x16, #:lo12:gps_unwatched_real+8*n]
    br x16
    .cfi_endproc
    .set n, n+1
    .endr
    .p2align 6

#else
#error "gpushare has stubs for x86-64 and aarch64 only"
#endif

    .section .note.GNU-stack, "", %progbits
