#include "artel/comm/collectives/lane_reduce.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

namespace artel::comm {
namespace {

struct HostSlice {
  size_t begin, end;
};

// All ranks perform the same sequence of turns. In each turn, a rank sends a segment to the rank of
// its stripe on one host, and receives a segment from the host at the same distance on the other
// side. Several hosts therefore never send to the same one while other links idle. Slices are
// processed in blocks. The turns of a block exchange the partial sums of its segments by increasing
// distance, then, if all ranks need the totals, the totals by increasing distance.
//
// Within a host, a rank passes partial sums to its neighbours some turns before they need them, and
// totals of its own stripe when they have arrived.
//
// A turn needs only data of earlier turns, so the rank that is furthest behind can always continue.
// This rules out deadlocks.
class LaneReduce {
 public:
  LaneReduce(const Route& route, int rank, Patience& patience, const HostLanes& plan,
             std::span<std::byte* const> partials, std::span<std::byte> output,
             std::vector<HostSlice> slices, bool shares_totals, ElementType type,
             const Reduction& reduction, size_t divisor)
      : route_(route),
        totals_route_{route.members, route.tag | 1},
        rank_(rank),
        host_(plan.host_of(rank)),
        hosts_(plan.hosts()),
        stripe_(plan.stripe_of(rank)),
        patience_(patience),
        plan_(plan),
        partials_(partials),
        output_(output),
        slices_(std::move(slices)),
        shares_totals_(shares_totals),
        type_(type),
        reduction_(reduction),
        divisor_(divisor) {
    // The same on all ranks.
    const size_t nodes = plan.tree().nodes().size();
    const size_t block_bytes = std::clamp(kScratch / 2 / nodes, 4 * kAlignment, kSendAhead);
    segment_bytes_ =
        std::min(patience.transport().segment_bytes(), block_bytes / 4 / kAlignment * kAlignment);
    for (const HostSlice& slice : slices_) largest_ = std::max(largest_, slice.end - slice.begin);
    longest_ = (largest_ + segment_bytes_ - 1) / segment_bytes_;
    block_ = std::clamp<size_t>(longest_, 1, block_bytes / segment_bytes_);
    find_neighbours();
    find_sums();
    if (stripe_ < 0) return;
    foreign_ = nodes - plan.sums(host_).size();
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(2 * foreign_ * block_ * segment_bytes_);
  }

  void run() {
    if (hosts_ == 1)
      for (size_t segment = 0; segment < longest_; ++segment) add_up(segment);
    const size_t turns = (longest_ + block_ - 1) / block_ * turns_of_block();
    // A rank sends at most this many turns ahead of the receives of the same turns.
    const size_t ahead = kSendAhead / std::clamp<size_t>(largest_, 1, segment_bytes_);
    // The scratch memory of a block is reused by the next but one. Without totals, a segment is
    // added up a block after its last partial sums were sent.
    const size_t window =
        std::min(ahead + 2 * block_, (shares_totals_ ? 3 : 1) * block_ * (hosts_ - 1));
    size_t expected = 0, given = 0;
    for (size_t turn = 0; turn < turns; ++turn) {
      while (expected < std::min(turns, turn + window)) expect(expected++);
      while (given < std::min(turns, turn + lookahead_)) give_partials(given++);
      if (turn >= ahead) {
        await(turn - ahead);
        give_totals(turn - ahead + 1);
      }
      add_up_inside(turn);
      const Turn now = at(turn);
      if (now.distance == 1 && (now.total || (!shares_totals_ && now.segment >= block_))) {
        const size_t segment = now.segment - (now.total ? 0 : block_);
        if (segment < segments(host_, stripe_)) {
          await(turn - block_);  // the last partial sums of the segment
          add_up(segment);
        }
      }
      send(turn);
      while (sends_.size() > window * (sums_.size() + 1)) retire(sends_);
    }
    while (!arriving_.empty()) retire(arriving_);
    give_totals(turns);
    if (hosts_ > 1 && !shares_totals_ && longest_ > 0)
      for (size_t segment = (longest_ - 1) / block_ * block_; segment < segments(host_, stripe_);
           ++segment)
        add_up(segment);
    for (Queue* const queue : {&totals_, &inside_sends_, &sends_})
      while (!queue->empty()) retire(*queue);
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
  // Another rank on this host.
  struct Neighbour {
    int rank;
    int stripe;
    size_t nodes;        // that it holds
    size_t first_place;  // in the scratch memory for sums of the host
  };

  void find_neighbours() {
    for (const int rank : plan_.ranks(host_)) {
      if (rank == rank_) continue;
      size_t nodes = 0;
      for (const HostLanes::Sum& sum : plan_.sums(host_))
        for (const auto& part : sum.parts) nodes += part.rank == rank ? 1 : 0;
      neighbours_.push_back({rank, plan_.stripe_of(rank), nodes, neighbour_nodes_});
      neighbour_nodes_ += nodes;
    }
    if (neighbours_.empty()) return;
    // A turn has up to two pieces.
    turn_bytes_ = 2 * std::max<size_t>(neighbour_nodes_, 1) * segment_bytes_;
    lookahead_ = std::clamp<size_t>(kScratch / turn_bytes_, 1, 2 * block_);
    if (stripe_ >= 0)
      inside_scratch_ = std::make_unique_for_overwrite<std::byte[]>(lookahead_ * turn_bytes_);
  }

  // A sum of the host replaces one of its parts here, if any.
  void find_sums() {
    if (stripe_ < 0) return;
    for (const HostLanes::Sum& sum : plan_.sums(host_)) {
      const auto own = std::find_if(sum.parts.begin(), sum.parts.end(),
                                    [&](const auto& part) { return part.rank == rank_; });
      if (own == sum.parts.end()) {
        extra_.push_back(std::make_unique_for_overwrite<std::byte[]>(output_.size()));
        sums_.push_back(extra_.back().get());
      } else {
        sums_.push_back(partials_[own->index]);
      }
    }
  }

  size_t turns_of_block() const { return (shares_totals_ ? 2 : 1) * (hosts_ - 1) * block_; }
  Turn at(size_t turn) const {
    const auto phase = static_cast<int>(turn % turns_of_block() / block_);
    return {1 + phase % (hosts_ - 1), phase >= hosts_ - 1,
            turn / turns_of_block() * block_ + turn % block_};
  }

  const HostSlice& slice(int host, int stripe) const { return slices_[stripe * hosts_ + host]; }
  size_t segments(int host, int stripe) const {
    if (stripe < 0) return 0;
    const HostSlice& all = slice(host, stripe);
    return (all.end - all.begin + segment_bytes_ - 1) / segment_bytes_;
  }
  // Bytes of one segment of a slice.
  std::span<std::byte> piece(std::byte* data, int host, int stripe, size_t segment) const {
    const HostSlice& all = slice(host, stripe);
    const size_t begin = all.begin + segment * segment_bytes_;
    return {data + begin, std::min(segment_bytes_, all.end - begin)};
  }
  // For one of the nodes of all other hosts, counted from left to right.
  std::byte* scratch(size_t segment, size_t foreign_node) {
    return scratch_.get() + (segment % (2 * block_) * foreign_ + foreign_node) * segment_bytes_;
  }
  std::byte* inside_scratch(size_t turn, size_t piece, size_t place) {
    return inside_scratch_.get() + turn % lookahead_ * turn_bytes_ +
           (piece * neighbour_nodes_ + place) * segment_bytes_;
  }

  // Calls use(host) for each slice of the stripe of which a segment is added up in this turn.
  template <typename Use>
  void for_pieces(const Turn& turn, int stripe, Use use) const {
    if (turn.total) return;
    const int other = (host_ + turn.distance) % hosts_;
    if (turn.segment < segments(other, stripe)) use(other);
    if (turn.distance == 1 && turn.segment < segments(host_, stripe)) use(host_);
  }
  // Calls use(host) for each slice of the stripe of which a total is known after this turn.
  template <typename Use>
  void for_totals(const Turn& turn, int stripe, Use use) const {
    if (!turn.total) return;
    const int from = (host_ + hosts_ - turn.distance) % hosts_;
    if (turn.distance == 1 && turn.segment < segments(host_, stripe)) use(host_);
    if (turn.segment < segments(from, stripe)) use(from);
  }

  void expect(size_t index) {
    const Turn turn = at(index);
    for (const Neighbour& neighbour : neighbours_)
      for_totals(turn, neighbour.stripe, [&](int host) {
        const auto place = piece(output_.data(), host, neighbour.stripe, turn.segment);
        totals_.push_back(
            {index, neighbour.rank, totals_route_.receive(patience_, neighbour.rank, place)});
      });
    const int from = (host_ + hosts_ - turn.distance) % hosts_;
    if (turn.segment >= segments(turn.total ? from : host_, stripe_)) return;
    const int peer = plan_.ranks(from)[stripe_];
    const auto expect_in = [&](std::span<std::byte> place) {
      arriving_.push_back({index, peer, route_.receive(patience_, peer, place)});
    };
    if (turn.total) {
      expect_in(piece(output_.data(), from, stripe_, turn.segment));
      return;
    }
    const size_t bytes = piece(output_.data(), host_, stripe_, turn.segment).size();
    size_t foreign = 0;
    for (const int holder : plan_.holders()) {
      if (holder == from) expect_in({scratch(turn.segment, foreign), bytes});
      if (holder != host_) ++foreign;
    }
  }

  // Gives neighbours the partial sums that they add up in this turn, and expects theirs.
  void give_partials(size_t index) {
    const Turn turn = at(index);
    for (const Neighbour& neighbour : neighbours_)
      for_pieces(turn, neighbour.stripe, [&](int host) {
        for (std::byte* const partial : partials_)
          inside_sends_.push_back(
              {index, neighbour.rank,
               route_.send(patience_, neighbour.rank,
                           piece(partial, host, neighbour.stripe, turn.segment))});
      });
    size_t number = 0;
    for_pieces(turn, stripe_, [&](int host) {
      const size_t bytes = piece(output_.data(), host, stripe_, turn.segment).size();
      for (const Neighbour& neighbour : neighbours_)
        for (size_t i = 0; i < neighbour.nodes; ++i) {
          std::byte* const place = inside_scratch(index, number, neighbour.first_place + i);
          inside_.push_back(
              {index, neighbour.rank, route_.receive(patience_, neighbour.rank, {place, bytes})});
        }
      ++number;
    });
  }

  // Adds up the sums of the host that this turn needs.
  void add_up_inside(size_t index) {
    if (neighbours_.empty()) return;
    while (!inside_.empty() && inside_.front().turn <= index) retire(inside_);
    const Turn turn = at(index);
    size_t number = 0;
    for_pieces(turn, stripe_, [&](int host) {
      for (size_t i = 0; i < sums_.size(); ++i) {
        const HostLanes::Sum& sum = plan_.sums(host_)[i];
        const auto total = piece(sums_[i], host, stripe_, turn.segment);
        std::vector<const std::byte*> sources;
        for (const auto& part : sum.parts)
          sources.push_back(part.rank == rank_
                                ? piece(partials_[part.index], host, stripe_, turn.segment).data()
                                : inside_scratch(index, number, place_of(part)));
        add(sum.tree, sources, total, inside_reduction(), 1);
      }
      ++number;
    });
  }

  size_t place_of(const HostLanes::Sum::Part& part) const {
    const auto neighbour = std::find_if(neighbours_.begin(), neighbours_.end(),
                                        [&](const auto& each) { return each.rank == part.rank; });
    return neighbour->first_place + part.index;
  }

  // Gives neighbours the totals that are known before this turn.
  void give_totals(size_t end) {
    for (; totals_given_ < end; ++totals_given_) {
      if (neighbours_.empty()) continue;
      const Turn turn = at(totals_given_);
      for_totals(turn, stripe_, [&](int host) {
        for (const Neighbour& neighbour : neighbours_)
          inside_sends_.push_back(
              {totals_given_, neighbour.rank,
               totals_route_.send(patience_, neighbour.rank,
                                  piece(output_.data(), host, stripe_, turn.segment))});
      });
    }
  }

  // Returns when everything sent to this rank by other hosts up to that turn has arrived.
  void await(size_t turn) {
    while (!arriving_.empty() && arriving_.front().turn <= turn) retire(arriving_);
  }

  // Finishes the tree for one segment of my slice.
  void add_up(size_t segment) {
    std::vector<const std::byte*> sources;
    size_t foreign = 0, own = 0;
    for (const int holder : plan_.holders())
      sources.push_back(holder == host_ ? piece(sums_[own++], host_, stripe_, segment).data()
                                        : scratch(segment, foreign++));
    add(plan_.tree(), sources, piece(output_.data(), host_, stripe_, segment), reduction_,
        divisor_);
  }

  void add(const LaneTree& tree, std::span<const std::byte* const> sources,
           std::span<std::byte> total, const Reduction& reduction, size_t divisor) const {
    std::byte* const target = total.data();
    if (tree.nodes().size() == 1 && sources.front() == target && divisor == 1) return;
    tree.add(sources, {&target, 1}, type_, total.size() / size_of(type_), reduction, divisor);
  }

  // The division of a mean comes with the whole tree.
  Reduction inside_reduction() const {
    return reduction_.kind == ReductionKind::mean ? Reduction(ReductionKind::sum) : reduction_;
  }

  void send(size_t index) {
    const Turn turn = at(index);
    const int to = (host_ + turn.distance) % hosts_;
    const int owner = turn.total ? host_ : to;
    if (turn.segment >= segments(owner, stripe_)) return;
    const int peer = plan_.ranks(to)[stripe_];
    std::byte* const result = output_.data();
    const std::span<std::byte* const> given = turn.total ? std::span(&result, 1) : std::span(sums_);
    for (std::byte* const data : given)
      sends_.push_back(
          {index, peer, route_.send(patience_, peer, piece(data, owner, stripe_, turn.segment))});
  }

  void retire(Queue& queue) {
    patience_.wait_for(route_.members[queue.front().peer], *queue.front().transfer);
    queue.pop_front();
  }

  Route route_, totals_route_;
  int rank_, host_, hosts_;
  int stripe_;  // -1: this rank exchanges only with its neighbours
  Patience& patience_;
  const HostLanes& plan_;
  std::span<std::byte* const> partials_;
  std::span<std::byte> output_;
  std::vector<HostSlice> slices_;  // of the hosts, stripe by stripe
  bool shares_totals_;
  ElementType type_;
  const Reduction& reduction_;
  size_t divisor_;
  size_t foreign_ = 0;  // nodes of other hosts
  size_t segment_bytes_ = 0;
  size_t largest_ = 0;  // bytes of a slice
  size_t longest_ = 0;  // segments of a slice
  size_t block_ = 0;    // segments of a block
  std::unique_ptr<std::byte[]> scratch_;
  std::vector<std::byte*> sums_;  // of this host
  std::vector<std::unique_ptr<std::byte[]>> extra_;
  Queue sends_, arriving_;  // from and to other hosts

  std::vector<Neighbour> neighbours_;
  size_t neighbour_nodes_ = 0;
  size_t turn_bytes_ = 0, lookahead_ = 0;
  std::unique_ptr<std::byte[]> inside_scratch_;
  Queue inside_, inside_sends_;  // partial sums from neighbours, and all that they are sent
  Queue totals_;                 // from neighbours
  size_t totals_given_ = 0;      // turns whose totals were given to neighbours
};

}  // namespace

void lane_reduce_messages(const Route& route, int rank, Patience& patience, const HostLanes& plan,
                          std::span<std::byte* const> partials, std::span<std::byte> output,
                          ElementType type, const Reduction& reduction, size_t divisor) {
  const auto parts = static_cast<size_t>(plan.hosts() * plan.stripes());
  const size_t count = output.size() / size_of(type);
  const auto cut = [&](size_t part) { return count * part / parts * size_of(type); };
  std::vector<HostSlice> slices;
  for (size_t part = 0; part < parts; ++part) slices.push_back({cut(part), cut(part + 1)});
  LaneReduce(route, rank, patience, plan, partials, output, std::move(slices), true, type,
             reduction, divisor)
      .run();
}

void lane_reduce_scatter_messages(const Route& route, int rank, Patience& patience,
                                  const HostLanes& plan, std::span<std::byte* const> partials,
                                  std::span<std::byte> output, std::span<const size_t> offsets,
                                  ElementType type) {
  std::vector<HostSlice> slices;
  for (int stripe = 0; stripe < plan.stripes(); ++stripe)
    for (int host = 0; host < plan.hosts(); ++host) {
      const int owner = plan.ranks(host)[static_cast<size_t>(stripe)];
      slices.push_back({offsets[owner], offsets[owner + 1]});
    }
  LaneReduce(route, rank, patience, plan, partials, output, std::move(slices), false, type, {}, 1)
      .run();
}

}  // namespace artel::comm
