// Ranks as threads: each runs the body with its own group on its own transport.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "artel/comm/control/socket.h"
#include "artel/comm/group.h"
#include "artel/comm/transports/builtin_transports.h"

namespace artel::comm {

inline std::string unique_name() {
  static std::atomic<int> next{0};
  return fmt::format("test-{}-{}", getpid(), next++);
}

// An address of this machine without a listener.
inline std::string free_address() { return to_string(control::free_endpoint("127.0.0.1")); }

// "gloo by TCP" is gloo whose ranks do not share memory, "gloo on two machines" that of ranks on
// two machines in turn; the same for "tcp", and "tcp, encrypted" shares no memory either. "gloo on
// hosts 0011" and "tcp on hosts 0011" are given the machine of each rank.
inline Group connect(GroupOptions options) {
  if (options.token.empty()) options.token = "test";
  if (const size_t at = options.transport.find(" on hosts "); at != std::string::npos) {
    const std::string machine(
        1, options.transport[at + std::string_view(" on hosts ").size() + options.rank]);
    options.transport.resize(at);
    if (options.transport == "gloo") return {make_gloo_transport(options, machine), options};
    return {make_tcp_transport(options, machine), options};
  }
  if (options.transport.starts_with("tcp")) {
    options.encrypt = options.transport == "tcp, encrypted";
    const std::string machine = options.transport == "tcp on two machines"
                                    ? fmt::format("machine {}", options.rank % 2)
                                    : "";
    options.transport = "tcp";
    return {make_tcp_transport(options, machine), options};
  }
  if (!options.transport.starts_with("gloo ")) return Group::connect(options);
  const std::string machine =
      options.transport == "gloo by TCP" ? "" : fmt::format("machine {}", options.rank % 2);
  options.transport = "gloo";
  return {make_gloo_transport(options, machine), options};
}

// The errors of the ranks, "" for none.
inline std::vector<std::string> run_ranks(int size, const std::function<void(Group&)>& body,
                                          GroupOptions options = {}) {
  if (options.address.empty())
    options.address = options.transport == "shm" ? unique_name() : free_address();
  if (options.arena_bytes == 0) options.arena_bytes = 48 << 20;
  options.size = size;
  std::vector<std::string> errors(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        GroupOptions own = options;
        own.rank = rank;
        Group group = connect(own);
        body(group);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// The same for bodies that must not fail.
inline void with_ranks(int size, const std::function<void(Group&)>& body,
                       const GroupOptions& options = {}) {
  const auto errors = run_ranks(size, body, options);
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(errors[rank], "") << "rank " << rank;
}

template <typename T>
std::span<std::byte> bytes(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace artel::comm
