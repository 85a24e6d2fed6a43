/*
 * Barriers, sums, maxima and broadcasts in the reduction engines of switches, checked against MPI's own.
 *
 * The program joins libfabric's collective group itself, because no public MPI does; MPI carries the
 * addresses, and says what the results must be. One process on each NIC can be a member.
 */
#include <mpi.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The engines combine up to four values of eight bytes. */
enum { VALUES = 4, PATIENCE = 60 };

static int rank, ranks;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_eq *eq;

static void fail(const char *call, long error)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, call, fi_strerror((int)labs(error)));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const long result_ = (call);                                                                                   \
        if (result_ < 0)                                                                                               \
            fail(#call, result_);                                                                                      \
    } while (0)

/* Starts an operation, and waits until it is complete. */
#define COMPLETE(call)                                                                                                 \
    do {                                                                                                               \
        const double end_ = MPI_Wtime() + PATIENCE;                                                                    \
        long result_;                                                                                                  \
        while ((result_ = (call)) == -FI_EAGAIN && MPI_Wtime() < end_)                                                 \
            progress();                                                                                                \
        if (result_ < 0)                                                                                               \
            fail(#call, result_);                                                                                      \
        while (!progress())                                                                                            \
            if (MPI_Wtime() > end_)                                                                                    \
                fail(#call, FI_ETIMEDOUT);                                                                             \
    } while (0)

/* Whether an operation has completed. */
static int progress(void)
{
    struct fi_cq_tagged_entry entry;
    const ssize_t got = fi_cq_read(cq, &entry, 1);

    if (got == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(cq, &error, 0);
        fail("an operation", error.err);
    }
    return got > 0;
}

/* The address of the group. The first member gets its multicast tree from the fabric manager. */
static fi_addr_t join(const struct fid_av_set *set, struct fid_mc **group)
{
    const double end = MPI_Wtime() + PATIENCE;
    long result;

    while ((result = fi_join_collective(ep, FI_ADDR_NOTAVAIL, set, 0, group, NULL)) == -FI_EAGAIN && MPI_Wtime() < end)
        progress();
    if (result < 0)
        fail("fi_join_collective", result);
    while (MPI_Wtime() < end) {
        struct fi_eq_entry entry;
        uint32_t event = 0;
        progress();
        const ssize_t got = fi_eq_read(eq, &event, &entry, sizeof entry, 0);
        if (got >= 0 && event == FI_JOIN_COMPLETE)
            return fi_mc_addr(*group);
        if (got == -FI_EAVAIL) {
            struct fi_eq_err_entry error = {0};
            fi_eq_readerr(eq, &error, 0);
            fprintf(stderr, "rank %d: the provider's error is %d\n", rank, error.prov_errno);
            fail("joining", error.err);
        }
    }
    fail("joining", FI_ETIMEDOUT);
    return FI_ADDR_NOTAVAIL;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rounds = argc > 1 ? atoi(argv[1]) : 20;

    struct fi_info *hints = fi_allocinfo(), *info;
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup("cxi");
    TRY(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));

    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fi_eq_attr eq_attr = {.size = 64, .wait_obj = FI_WAIT_NONE};
    struct fi_cq_attr cq_attr = {.size = 1024, .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = (size_t)ranks};
    TRY(fi_fabric(info->fabric_attr, &fabric, NULL));
    TRY(fi_eq_open(fabric, &eq_attr, &eq, NULL));
    TRY(fi_domain(fabric, info, &domain, NULL));
    TRY(fi_endpoint(domain, info, &ep, NULL));
    TRY(fi_cq_open(domain, &cq_attr, &cq, NULL));
    TRY(fi_av_open(domain, &av_attr, &av, NULL));
    TRY(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    TRY(fi_ep_bind(ep, &av->fid, 0));
    TRY(fi_ep_bind(ep, &eq->fid, 0));
    TRY(fi_enable(ep));

    size_t length = 0;
    fi_getname(&ep->fid, NULL, &length); /* which asks for the length only */
    char *const own = malloc(length), *const all = malloc(length * (size_t)ranks);
    fi_addr_t *const members = calloc((size_t)ranks, sizeof *members);
    TRY(fi_getname(&ep->fid, own, &length));
    MPI_Allgather(own, (int)length, MPI_BYTE, all, (int)length, MPI_BYTE, MPI_COMM_WORLD);
    if (fi_av_insert(av, all, (size_t)ranks, members, 0, NULL) != ranks)
        fail("fi_av_insert", FI_EINVAL);
    struct fi_av_set_attr set_attr = {.start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .stride = 1};
    struct fid_av_set *set;
    TRY(fi_av_set(av, &set_attr, &set, NULL));
    for (int i = 0; i < ranks; i++)
        TRY(fi_av_set_insert(set, members[i]));

    struct fid_mc *mc;
    const fi_addr_t group = join(set, &mc);
    int exact = 0;
    for (int round = 0; round < rounds; round++) {
        struct fi_context context;
        double mine[VALUES], sum[VALUES] = {0}, right_sum[VALUES];
        int64_t other[VALUES], most[VALUES] = {0}, right_most[VALUES];
        int64_t word[VALUES] = {rank == 0 ? round + 77 : -1, rank, 1, 2};
        for (int i = 0; i < VALUES; i++) {
            /* These are added without rounding, in any order. */
            mine[i] = (rank + 1) * 0.25 + round * i;
            other[i] = (rank * 31 + round * 7 + i) % 101 - 50;
        }
        MPI_Allreduce(mine, right_sum, VALUES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(other, right_most, VALUES, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        COMPLETE(fi_barrier(ep, group, &context));
        COMPLETE(fi_allreduce(ep, mine, VALUES, NULL, sum, NULL, group, FI_DOUBLE, FI_SUM, 0, &context));
        COMPLETE(fi_allreduce(ep, other, VALUES, NULL, most, NULL, group, FI_INT64, FI_MAX, 0, &context));
        COMPLETE(fi_broadcast(ep, word, VALUES, NULL, group, members[0], FI_INT64, 0, &context));
        exact += !memcmp(sum, right_sum, sizeof sum) && !memcmp(most, right_most, sizeof most) &&
                 word[0] == round + 77 && word[1] == 0;
    }
    printf("rank %d of %d: %d of %d rounds exact in switches\n", rank, ranks, exact, rounds);
    MPI_Barrier(MPI_COMM_WORLD);
    fi_close(&mc->fid);
    MPI_Finalize();
    return exact != rounds;
}
