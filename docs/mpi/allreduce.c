/* Adds 100,000 doubles of all ranks, once or for a number of seconds, and checks every sum. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100000 };

int main(int argc, char **argv)
{
    static double mine[COUNT], sum[COUNT];
    char node[MPI_MAX_PROCESSOR_NAME];
    int rank, ranks, length, rounds = 0, exact = 0, more = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_processor_name(node, &length);
    const double seconds = argc > 1 ? atof(argv[1]) : 0, start = MPI_Wtime();
    for (int i = 0; i < COUNT; i++)
        mine[i] = rank + i;
    while (more) {
        MPI_Allreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        int wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += sum[i] != ranks * (i + (ranks - 1) / 2.0);
        rounds++;
        exact += wrong == 0;
        /* All ranks do the same number of rounds. */
        more = MPI_Wtime() - start < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    printf("rank %d of %d on %s: %d of %d rounds exact\n", rank, ranks, node, exact, rounds);
    MPI_Finalize();
    return exact != rounds;
}
