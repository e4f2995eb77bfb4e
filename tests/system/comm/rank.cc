// One rank of a group that a launcher started: checks every collective, or, with BYTES, makes
// eight canonical sums of that length and prints how many bytes it has sent to other hosts.
//   artel_comm_rank mpi
//   artel_comm_rank gloo RANK SIZE HOST:PORT [INTERFACE [BYTES]]
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "artel/base/error.h"
#include "collectives.h"

namespace {

void add_up(artel::comm::Group& group, size_t bytes) {
  std::vector<std::byte> data(bytes);
  std::byte* const partial = data.data();
  const auto layout = artel::comm::LaneLayout::even(group.size(), group.size());
  for (int i = 0; i < 8; ++i)
    group.lane_reduce(layout, {&partial, 1}, data, artel::comm::ElementType::f32);
  group.barrier();
  fmt::print("{}\n", group.traffic_between_hosts().sent_bytes);
}

void run(int argc, char** argv) {
  artel::comm::GroupOptions options{.transport = argc > 1 ? argv[1] : "mpi"};
  options.encrypt = options.transport == "tls";
  if (options.encrypt) options.transport = "gloo";
  if (argc > 4) {
    options.rank = std::stoi(argv[2]);
    options.size = std::stoi(argv[3]);
    options.address = argv[4];
    options.token = "secret";
  }
  if (argc > 5) options.interface = argv[5];
  auto group = artel::comm::Group::connect(options);
  if (argc > 6) return add_up(group, std::stoul(argv[6]));
  artel::comm::check_every_collective(group, artel::comm::Algorithm::automatic);
  if (!options.encrypt)  // our own connections bring no collectives along
    artel::comm::check_reductions(group, 1000, {.algorithm = artel::comm::Algorithm::native});
  auto half = group.split(group.rank() % 2);
  artel::comm::check_reductions(half, 1000, {});
  const std::vector<int> hosts = group.host_numbers();
  if (group.rank() == 0)
    fmt::print("{} ranks on {} hosts, {} failures\n", group.size(),
               1 + *std::max_element(hosts.begin(), hosts.end()),
               testing::Test::HasFailure() ? "some" : "no");
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
