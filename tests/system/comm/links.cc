// One rank of a group that mpirun started: what each of its links carries in an exchange, compared
// with the schedule of the algorithm.
//   artel_comm_links mpi
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/unit/train/link_loads.h"

namespace artel {
namespace {

// The cases for this group, whose hosts are those on which the ranks really are.
std::vector<LinkCase> cases_for(const comm::Group& group) {
  std::string hosts;
  for (const int host : group.host_numbers()) hosts += static_cast<char>('0' + host);
  return {{"auto", "exact", hosts},          {"ring", "fast", hosts},
          {"tree", "fast", hosts},           {"halving", "fast", hosts},
          {"hierarchical", "exact", hosts},  {"coordinator", "exact", hosts},
          {"coordinator", "exact", hosts, 2}};
}

void check_links(const std::shared_ptr<comm::Group>& group, const LinkCase& c) {
  constexpr int kBuckets = 2;
  const std::vector<Load> want = promised(c, kBuckets)[group->rank()];
  const std::vector<Load> got = loads_measured(c, group, kBuckets);
  for (int to = 0; to < c.size(); ++to) {
    const std::string link = fmt::format("from {} to {} {}", group->rank(), to, c.text());
    EXPECT_EQ(got[to].bytes, want[to].bytes) << link;
    EXPECT_EQ(got[to].messages, want[to].messages) << link;
  }
}

}  // namespace
}  // namespace artel

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    const auto group = std::make_shared<artel::comm::Group>(
        artel::comm::Group::connect({.transport = argc > 1 ? argv[1] : "mpi"}));
    const std::vector<artel::LinkCase> cases = artel::cases_for(*group);
    for (const artel::LinkCase& c : cases) artel::check_links(group, c);
    if (group->rank() == 0) fmt::print("{} cases on {} ranks\n", cases.size(), group->size());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
