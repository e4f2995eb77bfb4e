#include "artel/comm/message_collectives.h"

#include <algorithm>
#include <deque>
#include <memory>

namespace artel::comm {
namespace {

// All ranks go through the same turns. In each, a rank sends a segment to one peer and receives one
// from the peer at the same distance on the other side, so no wire idles while several ranks send
// to one. Slices are taken in blocks: the turns of a block are, distance by distance, the partial
// sums of its segments, then, distance by distance, their totals, if they are wanted everywhere.
// What a turn needs has arrived in earlier ones, so the first unsent message of all can always be
// sent: there is no deadlock.
class LaneReduce {
 public:
  LaneReduce(const Route& route, int rank, Patience& patience, const LaneNodes& nodes,
             std::span<std::byte* const> partials, std::span<std::byte> output,
             std::vector<size_t> cuts, bool shares_totals, ElementType type,
             const Reduction& reduction, size_t divisor)
      : route_(route),
        rank_(rank),
        size_(static_cast<int>(route.members.size())),
        patience_(patience),
        nodes_(nodes),
        partials_(partials),
        output_(output),
        cuts_(std::move(cuts)),
        shares_totals_(shares_totals),
        type_(type),
        reduction_(reduction),
        divisor_(divisor),
        foreign_(nodes.tree().nodes().size() - nodes.of(rank).size()) {
    const size_t block_bytes =
        std::clamp(kScratch / 2 / std::max<size_t>(foreign_, 1), 4 * kAlignment, kSendAhead);
    segment_bytes_ =
        std::min(patience.transport().segment_bytes(), block_bytes / 4 / kAlignment * kAlignment);
    for (int owner = 0; owner < size_; ++owner) {
      longest_ = std::max(longest_, segments(owner));
      largest_ = std::max(largest_, cut(owner + 1) - cut(owner));
    }
    block_ = std::clamp<size_t>(longest_, 1, block_bytes / segment_bytes_);
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(2 * foreign_ * block_ * segment_bytes_);
  }

  void run() {
    if (size_ == 1)
      for (size_t segment = 0; segment < longest_; ++segment) add_up(segment);
    const size_t turns = (longest_ + block_ - 1) / block_ * turns_of_block();
    // A rank sends no more than this many turns before it has received what was sent in them.
    const size_t ahead = kSendAhead / std::clamp<size_t>(largest_, 1, segment_bytes_);
    // The scratch memory of a block serves the next but one. Without totals, a segment is added up
    // a block after its last partial sums were sent.
    const size_t window =
        std::min(ahead + 2 * block_, (shares_totals_ ? 3 : 1) * block_ * (size_ - 1));
    size_t expected = 0;
    for (size_t turn = 0; turn < turns; ++turn) {
      while (expected < std::min(turns, turn + window)) expect(expected++);
      if (turn >= ahead) await(turn - ahead);
      const Turn now = at(turn);
      if (now.distance == 1 && (now.total || (!shares_totals_ && now.segment >= block_))) {
        const size_t segment = now.segment - (now.total ? 0 : block_);
        if (segment < segments(rank_)) {
          await(turn - block_);  // the last partial sums of the segment
          add_up(segment);
        }
      }
      send(turn);
      while (sends_.size() > window * (partials_.size() + 1)) retire(sends_);
    }
    while (!arriving_.empty()) retire(arriving_);
    if (size_ > 1 && !shares_totals_ && longest_ > 0)
      for (size_t segment = (longest_ - 1) / block_ * block_; segment < segments(rank_); ++segment)
        add_up(segment);
    while (!sends_.empty()) retire(sends_);
  }

 private:
  static constexpr size_t kScratch = 16 << 20;  // bytes, unless there are very many nodes
  static constexpr size_t kAlignment = 64;

  struct Turn {
    int distance;
    bool total;      // or partial sums
    size_t segment;  // of a slice: the receiver's for partial sums, the sender's for totals
  };
  struct Message {
    size_t turn;
    int peer;
    std::unique_ptr<Transfer> transfer;
  };
  using Queue = std::deque<Message>;

  size_t turns_of_block() const { return (shares_totals_ ? 2 : 1) * (size_ - 1) * block_; }
  Turn at(size_t turn) const {
    const auto phase = static_cast<int>(turn % turns_of_block() / block_);
    return {1 + phase % (size_ - 1), phase >= size_ - 1,
            turn / turns_of_block() * block_ + turn % block_};
  }

  size_t cut(int owner) const { return cuts_[owner]; }
  size_t segments(int owner) const {
    return (cut(owner + 1) - cut(owner) + segment_bytes_ - 1) / segment_bytes_;
  }
  // Bytes of one segment of the slice of `owner`.
  std::span<std::byte> piece(std::byte* data, int owner, size_t segment) const {
    const size_t begin = cut(owner) + segment * segment_bytes_;
    return {data + begin, std::min(segment_bytes_, cut(owner + 1) - begin)};
  }
  // For one of the nodes of all other ranks, counted from left to right.
  std::byte* scratch(size_t segment, size_t foreign_node) {
    return scratch_.get() + (segment % (2 * block_) * foreign_ + foreign_node) * segment_bytes_;
  }

  void expect(size_t turn) {
    const auto [distance, total, segment] = at(turn);
    const int from = (rank_ + size_ - distance) % size_;
    if (segment >= segments(total ? from : rank_)) return;
    const auto expect_in = [&](std::span<std::byte> place) {
      arriving_.push_back({turn, from, route_.receive(patience_, from, place)});
    };
    if (total) {
      expect_in(piece(output_.data(), from, segment));
      return;
    }
    size_t foreign = 0;
    for (int rank = 0; rank < from; ++rank)
      if (rank != rank_) foreign += nodes_.of(rank).size();
    const size_t bytes = piece(output_.data(), rank_, segment).size();
    for (size_t i = 0; i < nodes_.of(from).size(); ++i)
      expect_in({scratch(segment, foreign++), bytes});
  }

  // Returns when everything sent to this rank up to that turn has arrived.
  void await(size_t turn) {
    while (!arriving_.empty() && arriving_.front().turn <= turn) retire(arriving_);
  }

  // Finishes the tree for one segment of my slice.
  void add_up(size_t segment) {
    std::vector<const std::byte*> sources;
    size_t foreign = 0;
    for (int from = 0; from < size_; ++from)
      for (size_t i = 0; i < nodes_.of(from).size(); ++i)
        sources.push_back(from == rank_ ? piece(partials_[i], rank_, segment).data()
                                        : scratch(segment, foreign++));
    const auto total = piece(output_.data(), rank_, segment);
    std::byte* const target = total.data();
    nodes_.tree().add(sources, {&target, 1}, type_, total.size() / size_of(type_), reduction_,
                      divisor_);
  }

  void send(size_t turn) {
    const auto [distance, total, segment] = at(turn);
    const int to = (rank_ + distance) % size_;
    const int owner = total ? rank_ : to;
    if (segment >= segments(owner)) return;
    std::byte* const result = output_.data();
    const auto given = total ? std::span(&result, 1) : partials_;
    for (std::byte* data : given)
      sends_.push_back({turn, to, route_.send(patience_, to, piece(data, owner, segment))});
  }

  void retire(Queue& queue) {
    patience_.wait_for(route_.members[queue.front().peer], *queue.front().transfer);
    queue.pop_front();
  }

  Route route_;
  int rank_;
  int size_;
  Patience& patience_;
  const LaneNodes& nodes_;
  std::span<std::byte* const> partials_;
  std::span<std::byte> output_;
  std::vector<size_t> cuts_;  // where the slices of the ranks begin, and the end
  bool shares_totals_;
  ElementType type_;
  const Reduction& reduction_;
  size_t divisor_;
  size_t foreign_;  // nodes of other ranks
  size_t segment_bytes_ = 0;
  size_t largest_ = 0;  // bytes of a slice
  size_t longest_ = 0;  // segments of a slice
  size_t block_ = 0;    // segments of a block
  std::unique_ptr<std::byte[]> scratch_;
  Queue sends_;
  Queue arriving_;
};

}  // namespace

void compare_operations(const Route& route, int rank, Patience& patience) {
  const int size = static_cast<int>(route.members.size());
  if (size == 1) return;
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  const Operation& mine = patience.operation();
  Operation theirs;
  const auto arriving =
      route.receive(patience, previous, std::as_writable_bytes(std::span(&theirs, 1)));
  const auto leaving = route.send(patience, next, std::as_bytes(std::span(&mine, 1)));
  patience.wait_for(route.members[previous], *arriving);
  if (!mine.matches(theirs))
    throw Error(ErrorKind::communication,
                mismatch_message(route.members[rank], mine, route.members[previous], theirs));
  patience.wait_for(route.members[next], *leaving);
}

void lane_reduce_messages(const Route& route, int rank, Patience& patience, const LaneNodes& nodes,
                          std::span<std::byte* const> partials, std::span<std::byte> output,
                          ElementType type, const Reduction& reduction, size_t divisor) {
  const size_t size = route.members.size(), count = output.size() / size_of(type);
  std::vector<size_t> cuts;
  for (size_t owner = 0; owner <= size; ++owner)
    cuts.push_back(count * owner / size * size_of(type));
  LaneReduce(route, rank, patience, nodes, partials, output, std::move(cuts), true, type, reduction,
             divisor)
      .run();
}

void lane_reduce_scatter_messages(const Route& route, int rank, Patience& patience,
                                  const LaneNodes& nodes, std::span<std::byte* const> partials,
                                  std::span<std::byte> output, std::span<const size_t> offsets,
                                  ElementType type) {
  LaneReduce(route, rank, patience, nodes, partials, output, {offsets.begin(), offsets.end()},
             false, type, {}, 1)
      .run();
}

}  // namespace artel::comm
