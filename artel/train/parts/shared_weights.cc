#include "artel/train/parts/shared_weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "artel/base/pages.h"

namespace artel {
namespace {

// A worker's memory as announced to the others. Pages can only be shared if weights start at the
// same offset in a page on all workers.
struct Whereabouts {
  uint64_t place = 0, within_page = 0, is_shared = 0;
};

std::span<std::byte> pages_of(std::span<float> values) {
  return pages_in(std::as_writable_bytes(values));
}

// The parts of `values` outside whole pages.
std::vector<std::span<float>> borders_of(std::span<float> values) {
  const std::span<std::byte> pages = pages_of(values);
  if (pages.empty()) return {values};
  auto* const begin = reinterpret_cast<float*>(pages.data());
  auto* const end = reinterpret_cast<float*>(pages.data() + pages.size());
  return {{values.data(), begin}, {end, values.data() + values.size()}};
}

}  // namespace

SharedWeights::SharedWeights(comm::Group& group, Kept kept)
    : kept_(std::move(kept)), rank_(group.rank()) {
  size_t bytes = 0;
  for (const std::span<float> values : kept_[rank_]) bytes += pages_of(values).size();
  memory_ = group.allocate(bytes + page_bytes());
  own_ = pages_in({memory_.get(), bytes + page_bytes()}).first(bytes);
  const std::optional<uint64_t> place = group.place_of(own_);
  Whereabouts own = {.place = place.value_or(0), .is_shared = place ? 1U : 0U};
  for (const std::vector<std::span<float>>& of_worker : kept_)
    if (!of_worker.empty())
      own.within_page = reinterpret_cast<uintptr_t>(of_worker.front().data()) % page_bytes();
  std::vector<Whereabouts> all(kept_.size());
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "places of weights"});
  const bool works = std::all_of(all.begin(), all.end(), [&](const Whereabouts& worker) {
    return worker.is_shared == 1 && worker.within_page == own.within_page;
  });
  if (!works) {
    memory_.reset();
    return;
  }
  std::vector<uint64_t> places;
  for (const Whereabouts& worker : all) places.push_back(worker.place);
  map(group, places);
}

void SharedWeights::map(comm::Group& group, const std::vector<uint64_t>& places) {
  for (int worker = 0; worker < static_cast<int>(kept_.size()); ++worker) {
    std::vector<std::span<float>>& borders = borders_.emplace_back();
    size_t at = 0;
    for (const std::span<float> values : kept_[worker]) {
      for (const std::span<float> border : borders_of(values)) borders.push_back(border);
      const std::span<std::byte> pages = pages_of(values);
      if (pages.empty()) continue;
      if (worker == rank_) std::memcpy(own_.data() + at, pages.data(), pages.size());
      group.map_place(places[worker] + at, pages, worker == rank_);
      at += pages.size();
    }
    size_t bytes = 0;
    for (const std::span<float> border : borders) bytes += border.size_bytes();
    border_bytes_.push_back(bytes);
  }
  look_away(own_);
}

SharedWeights::~SharedWeights() {
  size_t at = 0;
  for (int worker = 0; works() && worker < static_cast<int>(kept_.size()); ++worker)
    for (const std::span<float> values : kept_[worker]) {
      const std::span<std::byte> pages = pages_of(values);
      if (worker != rank_) {
        make_empty(pages);
        continue;
      }
      make_private(pages);
      forget(own_.subspan(at, pages.size()));
      at += pages.size();
    }
}

void SharedWeights::exchange(comm::Group& group) {
  std::vector<std::byte> all(
      std::accumulate(border_bytes_.begin(), border_bytes_.end(), size_t{0}));
  const auto side_by_side = [&](int worker) {
    return std::span(all).subspan(
        std::accumulate(border_bytes_.begin(), border_bytes_.begin() + worker, size_t{0}),
        border_bytes_[worker]);
  };
  const std::span<std::byte> own = side_by_side(rank_);
  std::byte* to = own.data();
  for (const std::span<float> border : borders_[rank_])
    to = std::ranges::copy(std::as_bytes(border), to).out;
  group.all_gather(own, all, border_bytes_, {.label = "borders of weights"});
  for (int worker = 0; worker < static_cast<int>(borders_.size()); ++worker) {
    if (worker == rank_) continue;
    const std::byte* from = side_by_side(worker).data();
    for (const std::span<float> border : borders_[worker]) {
      std::copy_n(from, border.size_bytes(), std::as_writable_bytes(border).begin());
      from += border.size_bytes();
    }
  }
}

}  // namespace artel
