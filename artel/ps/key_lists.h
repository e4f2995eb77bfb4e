// The key lists in the requests of one worker: lists cached by signature, and temporary lists,
// which live until their request has been answered.
#pragma once

#include <deque>
#include <vector>

#include "artel/ps/filters/key_cache.h"
#include "artel/ps/messages.h"

namespace artel::ps {

class KeyLists {
 public:
  KeyLists() : known_(kMostKeys) {}

  // The checked keys of a request; null for the whole range. They live until `done`.
  const std::vector<uint64_t>* read(Message& message);
  // Releases the keys of an answered request. Requests are answered in order.
  void done(const std::vector<uint64_t>* keys) {
    if (keys && !temporary_.empty() && keys == &temporary_.front()) temporary_.pop_front();
  }

 private:
  KnownLists known_;
  std::deque<std::vector<uint64_t>> temporary_;
};

}  // namespace artel::ps
