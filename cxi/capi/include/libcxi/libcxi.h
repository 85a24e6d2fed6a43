/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * libcxi: services, devices and telemetry of Cassini NICs.
 *
 * The header of cxi-capi: the functions that job schedulers and tools call, with the layouts that all
 * releases share. Programs with queues and events use HPE's header, whose
 * inline functions are the data path.
 */
#ifndef LIBCXI_H
#define LIBCXI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <linux/types.h>

#include "cxi_counters.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest names, without their NUL; a part's description has its NUL within. */
#define CXIL_DEVNAME_MAX 13
#define CXIL_DRVNAME_MAX 8
#define CXIL_FRUDESC_MAX 16

#define CXI_SVC_MAX_MEMBERS 2
#define CXI_SVC_MAX_VNIS 4
#define CXI_DEFAULT_SVC_ID 1

enum cassini_version {
	CASSINI_1 = 0x10,
	CASSINI_1_0 = 0x11,
	CASSINI_1_1 = 0x12,
	CASSINI_2 = 0x20,
	CASSINI_2_0 = 0x21,
};

enum system_type_identifier {
	CASSINI_MIX,
	CASSINI_1_ONLY,
	CASSINI_2_ONLY,
};

enum cxi_rsrc_type {
	CXI_RSRC_TYPE_PTE,
	CXI_RSRC_TYPE_TXQ,
	CXI_RSRC_TYPE_TGQ,
	CXI_RSRC_TYPE_EQ,
	CXI_RSRC_TYPE_CT,
	CXI_RSRC_TYPE_LE,
	CXI_RSRC_TYPE_TLE,
	CXI_RSRC_TYPE_AC,
	CXI_RSRC_TYPE_MAX,
};

enum cxi_traffic_class {
	CXI_TC_DEDICATED_ACCESS,
	CXI_TC_LOW_LATENCY,
	CXI_TC_BULK_DATA,
	CXI_TC_BEST_EFFORT,
	CXI_TC_ETH,
	CXI_TC_MAX,
};

enum cxi_svc_member_type {
	CXI_SVC_MEMBER_IGNORE,
	CXI_SVC_MEMBER_UID,
	CXI_SVC_MEMBER_GID,
	/* From SHS 14.0 on. */
	CXI_SVC_MEMBER_NET_NS,
	CXI_SVC_MEMBER_MAX,
};

/* What a NIC is and has. */
struct cxil_devinfo {
	unsigned int dev_id;
	union {
		unsigned int nic_addr;
		unsigned int nid;
	};
	unsigned int pid_bits;
	unsigned int pid_count;
	unsigned int pid_granule;
	unsigned int min_free_shift;
	unsigned int rdzv_get_idx;
	char device_name[CXIL_DEVNAME_MAX + 1];
	char driver_name[CXIL_DRVNAME_MAX + 1];
	unsigned int vendor_id;
	unsigned int device_id;
	unsigned int device_rev;
	unsigned int device_proto;
	unsigned int device_platform;
	uint16_t num_ptes;
	uint16_t num_txqs;
	uint16_t num_tgqs;
	uint16_t num_eqs;
	uint16_t num_cts;
	uint16_t num_acs;
	uint16_t num_tles;
	uint16_t num_les;
	uint16_t pci_domain;
	uint8_t pci_bus;
	uint8_t pci_device;
	uint8_t pci_function;
	size_t link_mtu;
	size_t link_speed;
	uint8_t link_state;
	int uc_nic;
	/* Event queue of the retry handler, 0 when none runs. */
	unsigned int pct_eq;
	enum cassini_version cassini_version;
	char fru_description[CXIL_FRUDESC_MAX];
	bool is_vf;
	enum system_type_identifier system_type_identifier;
};

/* An open NIC. */
struct cxil_dev {
	struct cxil_devinfo info;
};

struct cxil_device_list {
	unsigned int count;
	__extension__ struct cxil_devinfo info[];
};

/* What a service may have of one resource: at most, and reserved for it alone. */
struct cxi_limits {
	uint16_t max;
	uint16_t res;
};

struct cxi_rsrc_limits {
	union {
		__extension__ struct {
			struct cxi_limits ptes;
			struct cxi_limits txqs;
			struct cxi_limits tgqs;
			struct cxi_limits eqs;
			struct cxi_limits cts;
			struct cxi_limits les;
			struct cxi_limits tles;
			struct cxi_limits acs;
		};
		struct cxi_limits type[CXI_RSRC_TYPE_MAX];
	};
};

union cxi_svc_member {
	__kernel_uid_t uid;
	__kernel_gid_t gid;
};

struct cxi_svc_desc {
	uint8_t restricted_members : 1,
		restricted_vnis : 1,
		restricted_tcs : 1,
		resource_limits : 1,
		enable : 1,
		is_system_svc : 1,
		cntr_pool_id : 2;
	/* How many of vnis count. */
	uint8_t num_vld_vnis;
	uint16_t vnis[CXI_SVC_MAX_VNIS];
	bool tcs[CXI_TC_MAX];
	struct {
		union cxi_svc_member svc_member;
		enum cxi_svc_member_type type;
	} members[CXI_SVC_MAX_MEMBERS];
	struct cxi_rsrc_limits limits;
	unsigned int svc_id;
};

/* What there was when a service was refused; meaningful up to the first resource that is short. */
struct cxi_svc_fail_info {
	uint16_t rsrc_avail[CXI_RSRC_TYPE_MAX];
	bool no_le_pools;
	bool no_tle_pools;
	bool no_cntr_pools;
};

struct cxi_rsrc_use {
	unsigned int svc_id;
	unsigned int tle_pool_id;
	uint16_t in_use[CXI_RSRC_TYPE_MAX];
};

struct cxil_svc_list {
	unsigned int count;
	__extension__ struct cxi_svc_desc descs[];
};

struct cxil_svc_rsrc_list {
	unsigned int count;
	__extension__ struct cxi_rsrc_use rsrcs[];
};

static const char *const cxi_rsrc_type_strs[] __attribute__((unused)) = {
	"PTEs", "TXQs", "TGQs", "EQs", "CTs", "LEs", "TLEs", "ACs",
};

/* The name of a resource, "(invalid)" if there is no such type. */
static inline const char *cxi_rsrc_type_to_str(enum cxi_rsrc_type type)
{
	if ((unsigned int)type >= CXI_RSRC_TYPE_MAX)
		return "(invalid)";
	return cxi_rsrc_type_strs[type];
}

static const char *const cxi_tc_strs[] __attribute__((unused)) = {
	"DEDICATED_ACCESS", "LOW_LATENCY", "BULK_DATA", "BEST_EFFORT", "ETH",
};

/* Whether a retry handler runs for the NIC. */
static inline bool cxil_rh_running(struct cxil_devinfo *devinfo)
{
	return devinfo->pct_eq != 0;
}

/* All return 0 or a positive number, or a negative errno. Lists and devices are blocks of malloc;
 * they are written to the last argument on success only. */
int cxil_get_device_list(struct cxil_device_list **dev_list);
void cxil_free_device_list(struct cxil_device_list *dev_list);
int cxil_open_device(uint32_t dev_id, struct cxil_dev **dev);
void cxil_close_device(struct cxil_dev *dev);

/* The id of the service; *fail_info, if wanted, is written on failure. */
int cxil_alloc_svc(struct cxil_dev *dev, const struct cxi_svc_desc *desc,
		   struct cxi_svc_fail_info *fail_info);
/* The same for a parent service, which the functions of SR-IOV make services below; it has no members and
 * reserves all that it may have. -EPERM on a virtual function, -EINVAL before the driver of November 2026. */
int cxil_alloc_parent_svc(struct cxil_dev *dev, const struct cxi_svc_desc *desc,
			  struct cxi_svc_fail_info *fail_info);
int cxil_destroy_svc(struct cxil_dev *dev, unsigned int svc_id);
int cxil_get_svc(struct cxil_dev *dev, unsigned int svc_id, struct cxi_svc_desc *svc_desc);
int cxil_get_svc_list(struct cxil_dev *dev, struct cxil_svc_list **svc_list);
void cxil_free_svc_list(struct cxil_svc_list *svc_list);
int cxil_get_svc_rsrc_use(struct cxil_dev *dev, unsigned int svc_id, struct cxi_rsrc_use *rsrcs);
int cxil_get_svc_rsrc_list(struct cxil_dev *dev, struct cxil_svc_rsrc_list **rsrc_list);
void cxil_free_svc_rsrc_list(struct cxil_svc_rsrc_list *rsrc_list);

int cxil_set_svc_lpr(struct cxil_dev *dev, unsigned int svc_id, unsigned int lnis_per_rgid);
int cxil_get_svc_lpr(struct cxil_dev *dev, unsigned int svc_id);
/* From SHS 13.1 on; -EINVAL with an older driver. */
int cxil_svc_enable(struct cxil_dev *dev, unsigned int svc_id, bool enable);
int cxil_svc_set_exclusive_cp(struct cxil_dev *dev, unsigned int svc_id, bool exclusive_cp);
int cxil_svc_get_exclusive_cp(struct cxil_dev *dev, unsigned int svc_id, bool *exclusive_cp);
int cxil_svc_set_vni_range(struct cxil_dev *dev, unsigned int svc_id, uint16_t vni_min,
			   uint16_t vni_max);
int cxil_svc_get_vni_range(struct cxil_dev *dev, unsigned int svc_id, uint16_t *vni_min,
			   uint16_t *vni_max);
/* From SHS 14.0 on; -EINVAL with an older driver. */
int cxil_svc_set_netns(struct cxil_dev *dev, unsigned int svc_id, unsigned int netns);
int cxil_svc_get_netns(struct cxil_dev *dev, unsigned int svc_id, unsigned int *netns);

/* cntr: a value of enum c_cntr_type. ts may be NULL. */
int cxil_read_cntr(struct cxil_dev *dev, unsigned int cntr, uint64_t *value, struct timespec *ts);

#ifdef __cplusplus
}
#endif

#endif
