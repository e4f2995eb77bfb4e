// The lists of keys in the requests of one worker: those that it names by their signatures, and
// those that are needed only until their request has been answered.
#pragma once

#include <deque>
#include <vector>

#include "artel/ps/filters/key_cache.h"
#include "artel/ps/messages.h"

namespace artel::ps {

class KeyLists {
 public:
  KeyLists() : known_(kMostKeys) {}

  // The keys of a request that lists them, checked; null: all of its range. They stay until `done`.
  const std::vector<uint64_t>* read(Message& message);
  // The request with these keys has been answered; requests are answered in order.
  void done(const std::vector<uint64_t>* keys) {
    if (keys && !passing_.empty() && keys == &passing_.front()) passing_.pop_front();
  }

 private:
  KnownLists known_;
  std::deque<std::vector<uint64_t>> passing_;
};

}  // namespace artel::ps
