// Workers of a cluster form new groups.
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "artel/base/error.h"
#include "artel/cluster/cluster.h"

namespace artel {
namespace {

void on_members(int workers, const std::string& name,
                const std::function<void(int rank, Cluster& cluster)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < workers; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Cluster cluster(comm::GroupOptions{
            .rank = rank, .size = workers, .address = name + std::to_string(::getpid())});
        body(rank, cluster);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "worker " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

double sum_over(Cluster& cluster, double value) {
  cluster.group()->all_reduce(std::as_writable_bytes(std::span(&value, 1)), comm::ElementType::f64);
  return value;
}

TEST(Reform, MembersGetRanksInTheOrderOfTheList) {
  on_members(4, "reform_", [](int rank, Cluster& cluster) {
    const Membership before = cluster.membership();
    const std::vector<int> own = rank < 2 ? std::vector{1, 0} : std::vector{2, 3};
    cluster.reform(own);
    EXPECT_EQ(cluster.membership().generation, before.generation + 1);
    EXPECT_EQ(cluster.size(), 2);
    EXPECT_EQ(own[cluster.rank()], rank);
    EXPECT_EQ(sum_over(cluster, rank), rank < 2 ? 1 : 5);
    EXPECT_EQ(before.size(), 4);  // whoever holds it may still use it
  });
}

TEST(Reform, GroupsOfGroupsDoNotMeetEachOther) {
  on_members(4, "regroup_", [](int rank, Cluster& cluster) {
    cluster.reform(rank < 2 ? std::vector{0, 1} : std::vector{2, 3});
    cluster.reform({0, 1});
    EXPECT_EQ(sum_over(cluster, rank), rank < 2 ? 1 : 5);
    cluster.reform({cluster.rank()});
    EXPECT_EQ(cluster.size(), 1);
    EXPECT_EQ(cluster.group(), nullptr);
    EXPECT_EQ(cluster.membership().generation, 3);
  });
}

TEST(Reform, AfterAnErrorToo) {
  on_members(3, "broken_", [](int rank, Cluster& cluster) {
    EXPECT_THROW(cluster.attempt([&] {
      if (rank == 1) fail(ErrorKind::io, "disk on fire");
      sum_over(cluster, 1);
    }),
                 Error);
    if (rank == 1) return;
    cluster.reform({0, 2});
    EXPECT_EQ(sum_over(cluster, rank), 2);
  });
}

TEST(Reform, RefusesListsWithoutTheWorkerAndClustersOfOne) {
  on_members(2, "refused_", [](int rank, Cluster& cluster) {
    EXPECT_THROW(cluster.reform({1 - rank}), Error);
    EXPECT_EQ(cluster.size(), 2);
  });
  Cluster one;
  EXPECT_THROW(one.reform({0}), Error);
}

}  // namespace
}  // namespace artel
