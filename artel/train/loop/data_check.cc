#include "artel/train/loop/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "artel/base/random.h"

namespace artel {
namespace {

Facts facts_of(const std::vector<data::FileDigest>& files) {
  Facts facts;
  for (const data::FileDigest& file : files)
    facts.emplace_back("file " + file.name, fmt::format("{} bytes, {}", file.bytes, file.digest));
  return facts;
}

// The same for many files: one fact for each of a few hundred groups of neighbours, so that it fits
// into the first message of a newcomer. The name of a file decides whether it ends a group: where a
// file is missing, only its own group and the next one differ.
Facts grouped_facts(const std::vector<data::FileDigest>& files, size_t most) {
  const size_t group_size = std::bit_ceil(2 * files.size() / most);
  Facts facts = {{"files", std::to_string(files.size())}};
  size_t first = 0;
  uint64_t digest = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    digest = mix_key({digest, hash_name(files[i].name), hash_name(files[i].digest)});
    if (i + 1 < files.size() && hash_name(files[i].name) % group_size != 0) continue;
    facts.emplace_back(fmt::format("files {} to {}", files[first].name, files[i].name),
                       fmt::format("{}, {:016x}", i + 1 - first, digest));
    first = i + 1;
    digest = 0;
  }
  return facts;
}

}  // namespace

Facts DataCheck::facts() const {
  if (!files_ || !files_->done()) return {};
  constexpr size_t kMostFacts = 400;
  const std::vector<data::FileDigest>& files = files_->files();
  return files.size() <= kMostFacts ? facts_of(files) : grouped_facts(files, kMostFacts);
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
