#include "artel/ps/key_lists.h"

#include <algorithm>
#include <functional>

#include "artel/base/error.h"

namespace artel::ps {

const std::vector<uint64_t>* KeyLists::read(Message& message) {
  const Header& header = message.header;
  if (header.signature == 0) {
    require(message.keys.empty(), ErrorKind::invalid_argument,
            "[ps] keys: got a list without its signature");
    return nullptr;
  }
  static const std::vector<uint64_t> kNoKeys;
  if (header.signature == signature_of(kNoKeys)) return &kNoKeys;
  if (message.keys.empty()) {
    const std::vector<uint64_t>& known = known_.find(header.signature);
    require(known.front() >= header.keys.first && known.back() < header.keys.last,
            ErrorKind::invalid_argument, "[ps] keys: the list is not of keys {} to {}",
            header.keys.first, header.keys.last);
    return &known;
  }
  require(std::is_sorted(message.keys.begin(), message.keys.end(), std::less_equal<>()) &&
              message.keys.front() >= header.keys.first && message.keys.back() < header.keys.last,
          ErrorKind::invalid_argument,
          "[ps] keys: got a list that is not ascending, or not of {} to {}", header.keys.first,
          header.keys.last);
  if (header.has(remember)) return &known_.remember(header.signature, std::move(message.keys));
  return &temporary_.emplace_back(std::move(message.keys));
}

}  // namespace artel::ps
