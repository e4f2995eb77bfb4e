// Workers and parameter servers as threads.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "artel/cluster/cluster.h"

namespace artel {

// Runs `body(rank, cluster)` on as many threads as workers, with servers behind them, if any.
// Nobody may fail.
inline void on_workers_and_servers(int workers, int servers,
                                   const std::function<void(int, Cluster&)>& body) {
  static std::atomic<int> runs = 0;
  const std::string name = fmt::format("servers_test_{}_{}", ::getpid(), runs++);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<size_t>(workers + servers));
  for (int rank = 0; rank < workers + servers; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Cluster cluster(comm::GroupOptions{
            .rank = rank, .size = workers + servers, .address = name, .servers = servers});
        if (cluster.is_server()) return cluster.serve();
        body(rank, cluster);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace artel
