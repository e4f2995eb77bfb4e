// Key caching: a list of keys is sent once; later messages name it by its signature.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace artel::ps {

// What a worker has sent to one server.
class SentLists {
 public:
  // Whether the list must be sent (the server does not have it yet); it counts as sent from now on.
  bool must_send(uint64_t signature) { return sent_.insert(signature).second; }

 private:
  std::set<uint64_t> sent_;
};

// What a server has received from one worker.
class KnownLists {
 public:
  // At most `most_keys` in all lists together.
  explicit KnownLists(uint64_t most_keys) : room_(most_keys) {}

  // Throws if there is no room left, or if the signature belongs to other keys.
  const std::vector<uint64_t>& remember(uint64_t signature, std::vector<uint64_t> keys);
  // Throws for a list that was never sent.
  const std::vector<uint64_t>& find(uint64_t signature) const;

 private:
  uint64_t room_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> lists_;
};

}  // namespace artel::ps
