// A record of a rank's current operation. Ranks compare these records before they exchange data;
// messages are formatted from them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "artel/comm/collectives/reduction.h"
#include "artel/comm/collectives/schedule.h"
#include "artel/comm/element.h"

namespace artel::comm {

enum class Kind : uint8_t {
  send,
  receive,
  broadcast,
  scatter,
  gather,
  all_gather,
  reduce,
  all_reduce,
  reduce_scatter,
  all_to_all,
  barrier,
  lane_reduce,
  split,
  lane_reduce_scatter,
};

std::string_view to_string(Kind kind);

// Trivially copyable: it is written to shared memory and to the wire as raw bytes. The rendezvous
// checks that all ranks are little-endian machines with the same version.
struct Operation {
  uint32_t group = 0;
  uint32_t sequence = 0;
  uint64_t bytes = 0;  // 0 where ranks may differ
  int32_t root = -1;   // for lane reductions, the number of lanes
  Kind kind = Kind::barrier;
  ElementType type = ElementType::u8;
  ReductionKind reduction = ReductionKind::sum;
  Algorithm algorithm = Algorithm::automatic;
  std::array<char, 24> label{};  // cut to fit, ends with a zero

  void set_label(std::string_view text);

  // True if two ranks may run these operations together. Ignores labels.
  bool matches(const Operation& other) const;
  // "all_reduce #812 'bucket 5', 16 MiB".
  std::string name() const;
  // "all_reduce #812 of 4096 bytes of f32 (sum) 'bucket 5'": all that `matches` compares.
  std::string details() const;
};

// The error when the calls of two ranks differ.
std::string mismatch_message(int rank, const Operation& mine, int other_rank,
                             const Operation& theirs);

}  // namespace artel::comm
