// What a rank is doing in a group, in a form that can be sent: ranks compare these records before
// they exchange data, and messages for people are made from them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "artel/comm/element.h"
#include "artel/comm/reduction.h"
#include "artel/comm/schedule.h"

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

// Trivially copyable: it is written to shared memory and to the wire as it is (all our ranks are
// little endian machines of one version, which the rendezvous checks).
struct Operation {
  uint32_t group = 0;
  uint32_t sequence = 0;
  uint64_t bytes = 0;  // 0 where ranks may differ
  int32_t root = -1;   // over lanes: their number
  Kind kind = Kind::barrier;
  ElementType type = ElementType::u8;
  ReductionKind reduction = ReductionKind::sum;
  Algorithm algorithm = Algorithm::automatic;
  std::array<char, 24> label{};  // cut to fit, ends with a zero

  void set_label(std::string_view text);

  // Whether two ranks may run these together. Labels are for people and are not compared.
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
