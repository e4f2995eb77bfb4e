// Gloo's own allreduce, for comparison: artel_bench_comm_gloo RANK SIZE DIRECTORY BYTES... Rank 0
// prints "gloo BYTES SECONDS": the median.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int rank = std::stoi(argv[1]);
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  gloo::rendezvous::FileStore store(argv[3]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, std::stoi(argv[2]));
  context->connectFullMesh(store, device);
  for (int i = 4; i < argc; ++i) {
    const size_t bytes = std::stoul(argv[i]);
    std::vector<float> data(bytes / sizeof(float), 1e-3f);
    const int repetitions = bytes <= (1 << 20) ? 40 : 7;
    std::vector<double> times;
    for (int repetition = -2; repetition < repetitions; ++repetition) {
      gloo::BarrierOptions barrier(context);
      gloo::barrier(barrier);
      const auto begin = std::chrono::steady_clock::now();
      gloo::AllreduceOptions options(context);
      options.setOutput(data.data(), data.size());
      void (*sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
      options.setReduceFunction(sum);
      gloo::allreduce(options);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      if (repetition >= 0) times.push_back(taken.count());
    }
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    if (rank == 0) std::printf("gloo %zu %.9f\n", bytes, times[times.size() / 2]);
  }
  return 0;
}
