#include "artel/train/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace artel {
namespace {

Facts facts_of(const std::vector<data::FileDigest>& files) {
  Facts facts;
  for (const data::FileDigest& file : files)
    facts.emplace_back("file " + file.name, fmt::format("{} bytes, {}", file.bytes, file.digest));
  return facts;
}

}  // namespace

Facts DataCheck::facts() const {
  if (!files_ || !files_->done()) return {};
  constexpr size_t kMostListed = 100;
  if (files_->files().size() <= kMostListed) return facts_of(files_->files());
  return {{"files", fmt::format("{}, {:016x}", files_->files().size(), files_->digest())}};
}

void DataCheck::wait() const {
  if (files_) files_->wait();
}

std::optional<Facts> DataCheck::disputed(comm::Group& group) {
  struct State {
    uint64_t known, digest;
  };
  const State own = {knows() ? uint64_t{1} : 0, files_ ? files_->digest() : 0};
  std::vector<State> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "digest of the data"});
  pending_ = std::ranges::any_of(all, [](const State& state) { return state.known == 0; });
  const bool same = std::ranges::all_of(
      all, [&](const State& state) { return state.digest == all.front().digest; });
  if (pending_ || same) return {};
  return files_ ? facts_of(files_->files()) : Facts();
}

}  // namespace artel
