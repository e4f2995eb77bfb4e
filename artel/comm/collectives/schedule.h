// Schedules of collectives, as arithmetic: sender, receiver, chunk, round, and whether the receiver
// adds or stores the chunk. Pure functions of (algorithm, size, rank); executor.h runs them on any
// transport.
//
// A buffer is cut into `chunks` parts (the caller decides where). The hops of one rank are in the
// order of their rounds; hops of one round are independent of each other, and a hop may use what
// any earlier round has received. Every send has exactly one matching receive: the same round,
// chunks and effect on the other side.
//
//   artel::println("{}", artel::comm::schedule_table(artel::comm::Algorithm::ring, 4));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace artel::comm {

enum class Algorithm : uint8_t {
  automatic,     // chosen by size and topology, see calibration.h
  ring,          // 2(N-1) rounds, 2(N-1)/N of the bytes: best for large data
  tree,          // 2 log2 N rounds, up and down a binary tree
  halving,       // 2 log2 N rounds, 2(N-1)/N of the bytes: best for small data
  hierarchical,  // inside each host first, then between the hosts
  direct,        // every rank reads from every other: two rounds; in shared memory where
                 // available
  native,        // the collective of the transport's own library
};

std::string_view to_string(Algorithm algorithm);
// Throws for an unknown name.
Algorithm algorithm_from_string(std::string_view name);

enum class Direction : uint8_t { send, receive };
enum class Effect : uint8_t { add, replace };  // the receiver's action

struct Hop {
  int round;
  int peer;
  Direction direction;
  int first_chunk;
  int last_chunk;  // exclusive
  Effect effect;

  bool operator==(const Hop&) const = default;
};

struct Schedule {
  int chunks = 1;
  std::vector<Hop> hops;
};

// The hops of `rank` in an all_reduce. `hosts` gives the host of each rank and matters only for
// hierarchical; empty means that all are on one host. `automatic` and `native` have no hops:
// throws.
Schedule all_reduce_schedule(Algorithm algorithm, int size, int rank,
                             std::span<const int> hosts = {});

// Chunk r ends complete at rank r: N-1 adding rounds around the ring.
Schedule reduce_scatter_schedule(int size, int rank);
// Chunk r starts at rank r and ends everywhere: N-1 replacing rounds around the ring.
Schedule all_gather_schedule(int size, int rank);
// One chunk, up or down a binary tree.
Schedule reduce_schedule(int size, int rank, int root);
Schedule broadcast_schedule(int size, int rank, int root);
// Chunk r goes from the root to rank r, or from rank r to the root.
Schedule scatter_schedule(int size, int rank, int root);
Schedule gather_schedule(int size, int rank, int root);
// Sends chunk p of the input to rank p, receives from p into chunk p of the output. In round k the
// partners are k apart, so no rank is flooded.
Schedule all_to_all_schedule(int size, int rank);

// The all_reduce of all workers as a table for people: one line per message.
std::string schedule_table(Algorithm algorithm, int workers, std::span<const int> hosts = {});

}  // namespace artel::comm
