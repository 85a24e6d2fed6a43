/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The function that cxi-capi has and HPE's libcxi does not. A program that must run on either library
 * looks it up with dlsym(3).
 */
#ifndef CXI_RS_H
#define CXI_RS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The reason why this thread's last failed call failed, as one line; "" if no call has failed. Never
 * NULL. The string belongs to the library, and is valid until the next call of this function in the
 * same thread. It may send commands to the NIC, none of which changes anything. */
const char *cxi_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
