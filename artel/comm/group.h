// A group of ranks that compute together: messages and collectives between them.
//
//   std::vector<float> sums = {1, 2, 3};
//   if (artel::comm::Group* group = cluster.group())  // none for a single worker
//     group->all_reduce(std::as_writable_bytes(std::span(sums)), artel::comm::ElementType::f32);
//
// A Group is a value owned by its user; there is no global state, and several ranks may live in one
// process. All ranks must make the same collective calls in the same order; ranks that disagree get
// an error that shows both sides. Each operation ends by its deadline: with its result, or with an
// Error on every rank that names the first cause (a dead peer, a mismatch, a timeout). After an
// error the group is unusable.
//
// Calls on one group come from one thread at a time, except send, receive, set_phase and abort,
// which any thread may call. Different groups are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/time.h"
#include "artel/comm/collectives/lane_tree.h"
#include "artel/comm/collectives/reduction.h"
#include "artel/comm/collectives/schedule.h"
#include "artel/comm/connection/handle.h"
#include "artel/comm/options.h"
#include "artel/comm/traffic.h"
#include "artel/comm/transports/transport.h"

namespace artel::comm {

struct Calibration;

// Options of one call.
struct Call {
  std::string_view label = {};  // for people: "bucket 5"; at most 23 bytes are kept
  double timeout = 0;           // seconds; 0 selects the group's timeout
  Algorithm algorithm = Algorithm::automatic;
};

// The canonical sum: lanes are spread over the ranks in contiguous ranges, in rank order.
struct LaneLayout {
  int lanes = 1;
  std::vector<int> lanes_of_rank;  // one entry per rank; their sum is `lanes`

  static LaneLayout even(int lanes, int ranks);
  LaneRange range(int rank) const;
  std::vector<LaneRange> ranges() const;  // of all ranks
  bool operator==(const LaneLayout&) const = default;
  // The subtrees whose partial sums the rank must supply.
  std::vector<LaneRange> subtrees(int rank) const { return lane_subtrees(lanes, range(rank)); }
};

class Group {
 public:
  // Returns when all ranks have joined.
  static Group connect(const GroupOptions& options);
  // A group on a transport that the caller made (tests, and `split`).
  Group(std::shared_ptr<Transport> transport, const GroupOptions& given);
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;
  ~Group();

  int rank() const;
  int size() const;
  // The host name of each rank, and the number of its machine (0, 1, ...).
  std::vector<std::string> hosts() const;
  std::vector<int> host_numbers() const;
  std::string_view transport() const;
  // Seconds for each operation that does not say otherwise.
  double timeout() const;

  // Memory for data that will be reduced; see SharedBytes.
  SharedBytes allocate(size_t bytes);
  // Lets ranks on one machine access each other's memory; see Transport.
  std::optional<uint64_t> place_of(std::span<const std::byte> data) const;
  std::byte* at_place(uint64_t place, size_t bytes) const;
  void map_place(uint64_t place, std::span<std::byte> address, bool shared) const;

  // Tagged messages. The data must live until the handle has been waited for. Tags are below 2^22.
  Handle send(int peer, uint32_t tag, std::span<const std::byte> data);
  Handle receive(int peer, uint32_t tag, std::span<std::byte> data);
  // Receives a message that may take arbitrarily long. Logs no reminders.
  Handle listen(int peer, uint32_t tag, std::span<std::byte> data);
  // Bytes and messages exchanged with one rank, or with all members, since the transport was made.
  // Includes every other group of the transport. See traffic.h.
  Traffic traffic(int peer) const;
  Traffic traffic() const;
  // Traffic with members on other hosts only.
  Traffic traffic_between_hosts() const;
  // Counts bytes that a rank on this machine reads from this rank's memory, or the reverse.
  void count_in_place(int peer, size_t sent, size_t received) const;
  // Last known status of a rank. Also valid after the group has failed.
  PeerStatus status(int peer) const;
  // True if the rank has left or died and the group continues without it.
  bool has_left(int peer) const;

  void barrier(const Call& call = {});
  void broadcast(std::span<std::byte> data, int root, const Call& call = {});
  // `sizes` are the bytes of each rank; empty means that all are equal. At the root, input is the
  // concatenation of all outputs; elsewhere it is ignored.
  void scatter(std::span<const std::byte> input, std::span<std::byte> output, int root,
               std::span<const size_t> sizes = {}, const Call& call = {});
  void gather(std::span<const std::byte> input, std::span<std::byte> output, int root,
              std::span<const size_t> sizes = {}, const Call& call = {});
  // In place if the input is this rank's part of the output.
  void all_gather(std::span<const std::byte> input, std::span<std::byte> output,
                  std::span<const size_t> sizes = {}, const Call& call = {});
  // Only the root's output is used; it may be the input.
  void reduce(std::span<const std::byte> input, std::span<std::byte> output, ElementType type,
              int root, const Reduction& reduction = {}, const Call& call = {});
  void all_reduce(std::span<std::byte> data, ElementType type, const Reduction& reduction = {},
                  const Call& call = {});
  // Rank r gets part r of the reduction; `sizes` are the bytes of the parts. In place if the output
  // is this rank's part of the input.
  void reduce_scatter(std::span<const std::byte> input, std::span<std::byte> output,
                      ElementType type, const Reduction& reduction = {},
                      std::span<const size_t> sizes = {}, const Call& call = {});
  // Part p of the input goes to rank p, part p of the output comes from rank p. Not in place.
  void all_to_all(std::span<const std::byte> input, std::span<const size_t> input_sizes,
                  std::span<std::byte> output, std::span<const size_t> output_sizes,
                  const Call& call = {});

  // The canonical reduction over lanes. `partials` has one buffer of output.size() bytes per
  // subtree of layout.subtrees(rank()) or, if `each_lane`, per lane of layout.range(rank()). All
  // ranks receive the total, whose bits depend only on the number of lanes. `mean` divides it by
  // that number. The output may be one of the partials, which serve as scratch space.
  void lane_reduce(const LaneLayout& layout, std::span<std::byte* const> partials,
                   std::span<std::byte> output, ElementType type, const Reduction& reduction = {},
                   bool each_lane = false, const Call& call = {});

  // Like lane_reduce for data cut into one part per rank, of `sizes` bytes each. Writes only this
  // rank's part of the output and sends half as much.
  void lane_reduce_scatter(const LaneLayout& layout, std::span<std::byte* const> partials,
                           std::span<std::byte> output, ElementType type,
                           std::span<const size_t> sizes, const Call& call = {});

  // Runs `operations` on the group's own thread, after everything started before. Blocking calls
  // made in the meantime wait for their turn.
  Handle start(std::function<void(Group&)> operations);

  // Collective: ranks with the same colour form a group, ordered by (key, rank). A rank makes one
  // split at a time, across all its groups.
  Group split(int colour, int key = 0);

  // Sets this rank's activity, shown in messages of ranks that wait for it.
  void set_phase(std::string_view phase);
  // The numbers that `automatic` chooses by; must be the same on all ranks. See calibrate in
  // benchmark.h.
  void set_calibration(const Calibration& calibration);
  const Calibration& calibration() const;
  // Makes the waits of all ranks fail with this cause.
  void abort(std::string_view cause);
  // The same for a cause that concerns this worker. The other ranks' errors name it
  // (Error::report).
  void abort(std::string_view cause, std::string_view worker);
  // Throws the cause if the group has failed; notices dead ranks.
  void check();
  // Fails the group as if a rank had died. For members that are about to form another group.
  void dissolve(std::string_view cause);
  void dissolve(std::string_view cause, std::string_view worker);

 private:
  struct Core;
  explicit Group(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace artel::comm
