/*
 * high_descriptor.h - descriptors that stay open in a program, moved out of its way.
 *
 * Programs expect low numbers for what they open. A number beyond the process's descriptor table
 * makes the kernel grow it, which takes 5 to 20 ms with several threads (recorded on H200
 * machines), so a descriptor moves only to the upper end of the table's present size. Any thread.
 */
#pragma once

/* Returns the new number, close-on-exec, or fd itself where there is no room above. */
int gps_descriptor_move_high(int fd);
