/*
 * trampoline.S - dlsym and dlvsym, invisible.
 *
 * What the real ones answer depends on their return address (RTLD_NEXT, RTLD_DEFAULT, the namespace),
 * so a function of ours that called them would change the program. These ask gps_dl_wanted (no libc,
 * no instrumentation) whether the name is one that we substitute. If it is not, they jump to the real
 * one with every argument register as it came: the stack then shows no trace of us. If it is, they go
 * on in C with the return address as one argument more.
 */
#if defined(__x86_64__)

    .text
    .macro DOOR name, real, hooked, caller
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    mov 24(%rsp), %rdx
    call gps_dl_wanted
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %eax, %eax
    jnz 1f
    mov \real(%rip), %rax
    jmp *%rax
1:  mov (%rsp), \caller
    jmp \hooked
    .cfi_endproc
    .size \name, .-\name
    .endm

    DOOR dlsym, gps_real_dlsym, gps_dlsym_hooked, %rdx
    DOOR dlvsym, gps_real_dlvsym, gps_dlvsym_hooked, %rcx

    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0 /* IBT and shadow stack: we only call, return and jump */

#elif defined(__aarch64__)

    .text
    .macro DOOR name, real, hooked, caller
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-48]!
    .cfi_def_cfa_offset 48
    .cfi_offset 29, -48
    .cfi_offset 30, -40
    mov x29, sp
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    mov x2, x30
    bl gps_dl_wanted
    mov w9, w0
    ldr x2, [sp, #32]
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #48
    .cfi_restore 30
    .cfi_restore 29
    .cfi_def_cfa_offset 0
    cbnz w9, 1f
    adrp x16, \real
    ldr x16, [x16, #:lo12:\real]
    br x16
1:  mov \caller, x30
    b \hooked
    .cfi_endproc
    .size \name, .-\name
    .endm

    DOOR dlsym, gps_real_dlsym, gps_dlsym_hooked, x2
    DOOR dlvsym, gps_real_dlvsym, gps_dlvsym_hooked, x3

#else
#error "gpushare has trampolines for x86-64 and aarch64 only"
#endif

    .section .note.GNU-stack, "", %progbits
