// MPI_Allreduce, for comparison: mpirun -np N artel_bench_comm_mpi BYTES... Rank 0 prints "openmpi
// BYTES SECONDS": the median of the slowest rank's time.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) {
    const size_t bytes = std::strtoul(argv[i], nullptr, 10);
    std::vector<float> data(bytes / sizeof(float), 1e-3f);
    const int repetitions = bytes <= (64 << 10) ? 300 : bytes <= (1 << 20) ? 100 : 9;
    std::vector<double> times;
    for (int repetition = -2; repetition < repetitions; ++repetition) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      double seconds = MPI_Wtime() - begin;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (repetition >= 0) times.push_back(seconds);
    }
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    if (rank == 0) std::printf("openmpi %zu %.9f\n", bytes, times[times.size() / 2]);
  }
  MPI_Finalize();
  return 0;
}
