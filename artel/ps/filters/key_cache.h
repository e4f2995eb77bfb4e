// Key caching: a key list is sent once; later messages refer to it by its signature.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace artel::ps {

// The lists that a worker has sent to one server.
class SentLists {
 public:
  // Returns true if the server does not have the list yet, and records it as sent.
  bool must_send(uint64_t signature) { return sent_.insert(signature).second; }

 private:
  std::set<uint64_t> sent_;
};

// The lists that a server has received from one worker.
class KnownLists {
 public:
  // Stores at most `most_keys` over all lists.
  explicit KnownLists(uint64_t most_keys) : room_(most_keys) {}

  // Throws if the limit is exceeded, or if the signature belongs to other keys.
  const std::vector<uint64_t>& remember(uint64_t signature, std::vector<uint64_t> keys);
  // Throws for an unknown list.
  const std::vector<uint64_t>& find(uint64_t signature) const;

 private:
  uint64_t room_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> lists_;
};

}  // namespace artel::ps
