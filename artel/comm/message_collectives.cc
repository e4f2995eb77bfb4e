#include "artel/comm/message_collectives.h"

#include <algorithm>
#include <deque>
#include <memory>

namespace artel::comm {
namespace {

class LaneReduce {
 public:
  LaneReduce(const Route& route, int rank, Patience& patience, const LaneNodes& nodes,
             std::span<std::byte* const> partials, std::span<std::byte> output, ElementType type,
             const Reduction& reduction, size_t divisor)
      : route_(route),
        totals_{route.members, route.tag + 1},
        rank_(rank),
        size_(static_cast<int>(route.members.size())),
        patience_(patience),
        nodes_(nodes),
        partials_(partials),
        output_(output),
        type_(type),
        reduction_(reduction),
        divisor_(divisor),
        segment_bytes_(patience.transport().segment_bytes()) {
    foreign_ = nodes.tree().nodes().size() - nodes.of(rank).size();
    const size_t bytes_of_each = segment_bytes_ * std::max<size_t>(foreign_, 1);
    window_ = std::max<size_t>(4, kReceiveWindow / bytes_of_each);
    ahead_ = std::max<size_t>(2, kSendAhead / bytes_of_each);
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(window_ * foreign_ * segment_bytes_);
  }

  // Receives are posted a window ahead of the additions, partial sums are sent a little ahead.
  void run() {
    size_t longest = 0;
    for (int owner = 0; owner < size_; ++owner) longest = std::max(longest, segments(owner));
    for (size_t step = 0; step < longest + window_; ++step) {
      if (step < longest) expect(step);
      if (step + ahead_ >= window_ && step + ahead_ - window_ < longest)
        send_partials(step + ahead_ - window_);
      if (step + 1 >= window_ && step + 1 - window_ < segments(rank_)) finish(step + 1 - window_);
      while (sends_.size() > window_ * size_ * (partials_.size() + 1)) retire(sends_);
    }
    while (!sends_.empty()) retire(sends_);
    while (!arriving_totals_.empty()) retire(arriving_totals_);
  }

 private:
  struct Sent {
    int peer;
    std::unique_ptr<Transfer> transfer;
  };
  using Queue = std::deque<Sent>;

  size_t cut(int owner) const {
    const size_t count = output_.size() / size_of(type_);
    return count * owner / size_ * size_of(type_);
  }
  size_t segments(int owner) const {
    return (cut(owner + 1) - cut(owner) + segment_bytes_ - 1) / segment_bytes_;
  }
  // Bytes of one segment of the slice of `owner`.
  std::span<std::byte> piece(std::byte* data, int owner, size_t segment) const {
    const size_t begin = cut(owner) + segment * segment_bytes_;
    return {data + begin, std::min(segment_bytes_, cut(owner + 1) - begin)};
  }
  std::byte* scratch(size_t segment, size_t foreign_node) {
    return scratch_.get() + (segment % window_ * foreign_ + foreign_node) * segment_bytes_;
  }

  // Lets the partial sums for my slice come, and the totals of the others.
  void expect(size_t segment) {
    for (int distance = 1; distance < size_; ++distance) {
      const int from = (rank_ + distance) % size_;
      if (segment >= segments(from)) continue;
      arriving_totals_.push_back(
          {from, totals_.receive(patience_, from, piece(output_.data(), from, segment))});
    }
    if (segment >= segments(rank_)) return;
    size_t foreign = 0;
    for (int from = 0; from < size_; ++from)
      for (size_t i = 0; from != rank_ && i < nodes_.of(from).size(); ++i) {
        const size_t bytes = piece(output_.data(), rank_, segment).size();
        arriving_.push_back(
            {from, route_.receive(patience_, from, {scratch(segment, foreign++), bytes})});
      }
  }

  void send_partials(size_t segment) {
    for (int distance = 1; distance < size_; ++distance) {
      const int to = (rank_ + distance) % size_;
      if (segment >= segments(to)) continue;
      for (std::byte* partial : partials_)
        sends_.push_back({to, route_.send(patience_, to, piece(partial, to, segment))});
    }
  }

  // Adds up one segment of my slice and sends the total to all.
  void finish(size_t segment) {
    std::vector<const std::byte*> sources;
    size_t foreign = 0;
    for (int from = 0; from < size_; ++from)
      for (size_t i = 0; i < nodes_.of(from).size(); ++i) {
        if (from == rank_) {
          sources.push_back(piece(partials_[i], rank_, segment).data());
        } else {
          retire(arriving_);
          sources.push_back(scratch(segment, foreign++));
        }
      }
    const auto total = piece(output_.data(), rank_, segment);
    std::byte* const target = total.data();
    nodes_.tree().add(sources, {&target, 1}, type_, total.size() / size_of(type_), reduction_,
                      divisor_);
    for (int distance = 1; distance < size_; ++distance) {
      const int to = (rank_ + distance) % size_;
      sends_.push_back({to, totals_.send(patience_, to, total)});
    }
  }

  void retire(Queue& queue) {
    patience_.wait_for(route_.members[queue.front().peer], *queue.front().transfer);
    queue.pop_front();
  }

  Route route_;   // of the partial sums
  Route totals_;  // of the results
  int rank_;
  int size_;
  Patience& patience_;
  const LaneNodes& nodes_;
  std::span<std::byte* const> partials_;
  std::span<std::byte> output_;
  ElementType type_;
  const Reduction& reduction_;
  size_t divisor_;
  size_t segment_bytes_;
  size_t foreign_ = 0;  // nodes of other ranks
  size_t window_ = 0;   // segments for which receives are posted
  size_t ahead_ = 0;    // segments that are sent and not added yet
  std::unique_ptr<std::byte[]> scratch_;
  Queue sends_;
  Queue arriving_;  // partial sums, in the order of add_tree
  Queue arriving_totals_;
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
  LaneReduce(route, rank, patience, nodes, partials, output, type, reduction, divisor).run();
}

}  // namespace artel::comm
