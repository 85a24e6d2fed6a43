/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What cxi-capi has and HPE's libcxi has not. Look it up with dlsym(3) in a program that must run
 * on either.
 */
#ifndef CXI_RS_H
#define CXI_RS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Why the last call of this thread that failed did so, in one line; "" if none has. Never NULL.
 * The text is the library's and stands until this is called again in the same thread. Asking may
 * send commands to the NIC, none of which changes anything. */
const char *cxi_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
