/*
 * stubs.S - functions that stand in for unknown ones: stub n calls the function to which
 * gps_unwatched_call points, with n, and jumps to the address that this returns. All registers that
 * can hold arguments are then as they came, and so is the stack.
 */
#define STUBS 128 /* as unwatched.c has it */

    .bss
    .globl gps_unwatched_call
    .hidden gps_unwatched_call
    .p2align 3
gps_unwatched_call:
    .skip 8

    .text
    .globl gps_unwatched_stubs
    .hidden gps_unwatched_stubs
    .set n, 0

#if defined(__x86_64__)

    .p2align 4
call:
    .cfi_startproc
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    sub $192, %rsp
    mov %rdi, (%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    mov %rax, 48(%rsp)
    mov %r10, 56(%rsp)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    movups %xmm\i, 64+16*\i(%rsp)
    .endr
    mov %r11d, %edi
    call *gps_unwatched_call(%rip)
    mov %rax, %r11
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    movups 64+16*\i(%rsp), %xmm\i
    .endr
    mov (%rsp), %rdi
    mov 8(%rsp), %rsi
    mov 16(%rsp), %rdx
    mov 24(%rsp), %rcx
    mov 32(%rsp), %r8
    mov 40(%rsp), %r9
    mov 48(%rsp), %rax
    mov 56(%rsp), %r10
    leave
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    jmp *%r11
    .cfi_endproc

    .p2align 4
gps_unwatched_stubs:
    .rept STUBS
    .p2align 4
    .cfi_startproc
    endbr64
    mov $n, %r11d
    jmp call
    .cfi_endproc
    .set n, n+1
    .endr
    .p2align 4

    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0 /* IBT and shadow stack: we only call, return and jump */

#elif defined(__aarch64__)

    .p2align 4
call:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset 29, -224
    .cfi_offset 30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    adrp x16, gps_unwatched_call
    ldr x16, [x16, #:lo12:gps_unwatched_call]
    blr x16
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_restore 29
    .cfi_restore 30
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc

    .p2align 4
gps_unwatched_stubs:
    .rept STUBS
    .p2align 4
    .cfi_startproc
    hint #34 /* bti c */
    mov w17, #n
    b call
    .cfi_endproc
    .set n, n+1
    .endr
    .p2align 4

#else
#error "gpushare has stubs for x86-64 and aarch64 only"
#endif

    .section .note.GNU-stack, "", %progbits
