#include "artel/train/loop/arrival.h"

#include <algorithm>

#include "artel/train/parts/divided_state.h"

namespace artel {
namespace {

constexpr uint32_t kStateTag = 0;

void wait_for_pieces(std::vector<comm::Handle>& handles, double seconds) {
  for (comm::Handle& handle : handles) handle.wait(Deadline::after(seconds));
  handles.clear();
}

}  // namespace

Arrival::Arrival(comm::Group& group, const std::vector<bool>& late,
                 const std::vector<std::span<float>>& state)
    : group_(group.split(0)) {
  for (const std::span<float> values : state) {
    const std::span<std::byte> bytes = std::as_writable_bytes(values);
    for (size_t at = 0; at < bytes.size(); at += kPieceBytes)
      pieces_.push_back(bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at)));
  }
  std::vector<int> senders, receivers;
  for (int rank = 0; rank < group.size(); ++rank)
    (late[rank] ? receivers : senders).push_back(rank);
  const auto own = std::ranges::find(senders, group.rank());
  transfer_ = std::async(std::launch::async, [=, this, place = own - senders.begin()] {
                if (late[group_.rank()])
                  receive(senders);
                else
                  send(receivers, static_cast<size_t>(place), senders.size());
              }).share();
}

Arrival::~Arrival() { transfer_.wait(); }

void Arrival::wait() const {
  const std::shared_future<void> transfer = transfer_;  // each thread needs its own
  transfer.get();
}

// The senders take turns with the pieces.
void Arrival::send(const std::vector<int>& to, size_t first, size_t stride) {
  std::vector<comm::Handle> handles;
  for (size_t piece = first; piece < pieces_.size(); piece += stride) {
    for (const int rank : to) handles.push_back(group_.send(rank, kStateTag, pieces_[piece]));
    wait_for_pieces(handles, group_.timeout());
  }
}

void Arrival::receive(const std::vector<int>& from) {
  std::vector<comm::Handle> handles;
  for (size_t piece = 0; piece < pieces_.size(); ++piece) {
    const size_t turn = piece % from.size();
    handles.push_back(group_.receive(from[turn], kStateTag, pieces_[piece]));
    if (turn + 1 == from.size()) wait_for_pieces(handles, group_.timeout());
  }
  wait_for_pieces(handles, group_.timeout());
}

comm::LaneLayout lanes_without(const std::vector<bool>& late, int lanes) {
  const auto there = static_cast<int>(std::ranges::count(late, false));
  const comm::LaneLayout even = comm::LaneLayout::even(lanes, there);
  comm::LaneLayout layout = {lanes, {}};
  auto next = even.lanes_of_rank.begin();
  for (const bool is_late : late) layout.lanes_of_rank.push_back(is_late ? 0 : *next++);
  return layout;
}

}  // namespace artel
