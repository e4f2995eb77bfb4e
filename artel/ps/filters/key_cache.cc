#include "artel/ps/filters/key_cache.h"

#include "artel/base/error.h"

namespace artel::ps {

const std::vector<uint64_t>& KnownLists::remember(uint64_t signature, std::vector<uint64_t> keys) {
  require(keys.size() <= room_, ErrorKind::memory,
          "[ps] cache of keys: got {} more keys, expected at most {}", keys.size(), room_);
  const auto [found, is_new] = lists_.try_emplace(signature, std::move(keys));
  require(is_new, ErrorKind::invalid_argument, "[ps] cache of keys: the list {:#x} is sent twice",
          signature);
  room_ -= found->second.size();
  return found->second;
}

const std::vector<uint64_t>& KnownLists::find(uint64_t signature) const {
  const auto found = lists_.find(signature);
  require(found != lists_.end(), ErrorKind::not_found,
          "[ps] cache of keys: got the signature of an unknown list, {:#x}", signature);
  return found->second;
}

}  // namespace artel::ps
