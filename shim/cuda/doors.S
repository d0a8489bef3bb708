/*
 * doors.S - the functions that a look-up gets where another library is behind us (chain.h): a door
 * notes its number, and goes on in its wrapper, which finds arguments, stack and caller as they
 * came. Slot n of gps_chain_wrappers is where door n goes on. A door that was not handed out leads
 * nowhere.
 */
    .set n, 0

#if defined(__x86_64__)

#define ALIGNED 5
    .macro ROW
    .p2align ALIGNED
    .cfi_startproc
    endbr64
    mov gps_chain_via@gottpoff(%rip), %r11
    movl $n+1, %fs:(%r11)
    jmp *gps_chain_wrappers+8*n(%rip)
    .cfi_endproc
    .set n, n+1
    .endm

#elif defined(__aarch64__)

#define ALIGNED 6
    .macro ROW
    .p2align ALIGNED
    .cfi_startproc
    hint #34 /* bti c */
    mrs x16, tpidr_el0
    adrp x17, :gottprel:gps_chain_via
    ldr x17, [x17, #:gottprel_lo12:gps_chain_via]
    mov w9, #n+1
    str w9, [x16, x17]
    adrp x16, gps_chain_wrappers+8*n
    ldr x16, [x16, #:lo12:gps_chain_wrappers+8*n]
    br x16
    .cfi_endproc
    .set n, n+1
    .endm

#else
#error "gpushare has doors for x86-64 and aarch64 only"
#endif

    .text
    .globl gps_chain_doors
    .hidden gps_chain_doors
    .p2align ALIGNED
gps_chain_doors:
#define FUNCTION(name, parameters, arguments) ROW;
#include "hooks.def"
    .p2align ALIGNED

    .bss
    .globl gps_chain_wrappers
    .hidden gps_chain_wrappers
    .p2align 3
gps_chain_wrappers:
    .skip 8*n

    .section .tbss, "awT", %nobits
    .globl gps_chain_via
    .hidden gps_chain_via
    .type gps_chain_via, %object
    .size gps_chain_via, 4
    .p2align 2
gps_chain_via:
    .skip 4

#if defined(__x86_64__)
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0 /* IBT and shadow stack: we only jump */
#endif

    .section .note.GNU-stack, "", %progbits
