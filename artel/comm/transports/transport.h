// The interface of a group to shared memory, Gloo, or MPI: messages between ranks, and their
// status.
//
//   if (artel::comm::Group* group = cluster.group()) {
//     const artel::comm::PeerStatus first = group->status(0);
//     artel::println("{}: {}, {} s ago", first.host, first.phase, first.silent_seconds);
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/comm/collectives/reduction.h"
#include "artel/comm/traffic.h"

namespace artel::comm {

namespace shm {
class Channel;
}

// "rank 5", or "server 1 (rank 5)" where the last ranks are servers.
std::string rank_name(int rank, int size, int servers);

// A message in flight. Destroying an unfinished transfer cancels it; its buffer may then be reused.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Waits about `seconds` for the message to have left (its buffer may be reused) or arrived, and
  // returns whether it has. Throws when the message can never arrive.
  virtual bool wait(double seconds) = 0;
};

// Maximum lengths of PeerStatus::phase and PeerStatus::vitals; longer texts are cut.
constexpr size_t kPhaseBytes = 127;
constexpr size_t kVitalsBytes = 256;

struct PeerStatus {
  std::string host;
  int process = 0;
  double silent_seconds = 0;  // since its last sign of life
  std::string phase;          // its activity
  bool left = false;          // it has left the group, or died without ending it
  // The last status text (GroupOptions::vitals) that rank 0 has received; empty without one. It may
  // be padded with zeros, and its 8-byte words may come from two updates.
  std::string vitals = {};
};

// Memory for data that will be reduced: reachable by all ranks of this machine without a copy where
// the transport can do that, 64-byte aligned, zeroed, freed with the last reference.
using SharedBytes = std::shared_ptr<std::byte>;

// All functions may be called from several threads at once.
class Transport {
 public:
  virtual ~Transport() = default;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(hosts_.size()); }
  // The host name of each rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // Identifies the machine of a rank. Ranks on one machine share its wire.
  const std::string& machine(int rank) const {
    return (machines_.empty() ? hosts_ : machines_)[static_cast<size_t>(rank)];
  }
  virtual std::string_view name() const = 0;

  // The span must live as long as the transfer. Messages with one tag between two ranks keep their
  // order. A peer must not be the rank itself.
  virtual std::unique_ptr<Transfer> send(int peer, uint64_t tag,
                                         std::span<const std::byte> data) = 0;
  virtual std::unique_ptr<Transfer> receive(int peer, uint64_t tag, std::span<std::byte> data) = 0;

  // Bytes and messages to and from each peer since the transport was made; see traffic.h.
  const TrafficMeter& traffic() const { return traffic_; }

  // The best message length for large data.
  virtual size_t segment_bytes() const { return 256 << 10; }

  virtual SharedBytes allocate(size_t bytes);
  // For memory that all ranks on the machine can reach: converts an address in memory from
  // `allocate` to a number valid in all of them, and back. Empty for bytes outside such memory.
  virtual std::optional<uint64_t> place_of(std::span<const std::byte> data) const;
  virtual std::byte* at_place(uint64_t place, size_t bytes) const;
  // Maps memory from `allocate` of any rank on the machine over these addresses; both are whole
  // pages. Writes are visible to all ranks if `shared`, otherwise only here. Throws without such
  // memory.
  virtual void map_place(uint64_t place, std::span<std::byte> address, bool shared) const;

  // Creates a channel in shared memory for these ranks (including this one); null without shared
  // memory. `place` is the value that prepare_channel returned to the first of them.
  virtual uint64_t prepare_channel(int members);
  virtual std::unique_ptr<shm::Channel> open_channel(std::span<const int> members, uint64_t place);

  // The library's own all_reduce over all ranks; false if it has none for this type.
  virtual bool native_all_reduce(std::span<std::byte> data, ElementType type,
                                 const Reduction& reduction);

  // Sets this rank's activity, shown in messages of the others.
  virtual void set_phase(std::string_view phase) = 0;
  virtual PeerStatus status(int peer) = 0;
  // The rank that is really being waited for: `peer`, or a rank that has fallen silent and that
  // `peer` waits for.
  int suspect(int peer);
  // "rank 3 on host n07, last seen 0.4 s ago in backward"
  std::string describe(int peer);
  // "rank 3 on host n07 (process 4242) died, last seen 0.4 s ago in backward"
  std::string death_notice(int peer);

  // Makes every wait of every rank fail with this cause. The first cause is kept.
  virtual void abort(ErrorKind kind, std::string_view cause) noexcept = 0;
  // Throws the cause if the group has failed, here or elsewhere; notices dead peers.
  virtual void check() = 0;

 protected:
  int rank_ = 0;
  int servers_ = 0;  // the last ranks, for messages
  std::vector<std::string> hosts_;
  std::vector<std::string> machines_;  // where more than the host name is known
  TrafficMeter traffic_;
};

}  // namespace artel::comm
