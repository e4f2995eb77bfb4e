// What protects the connections of a run.
#pragma once

#include <optional>
#include <string_view>

#include "artel/comm/encryption.h"
#include "artel/comm/handshake.h"

namespace artel::comm {

struct RunSecret {
  explicit RunSecret(std::string_view token, bool encrypt = false) : key(token) {
    if (encrypt) encryption.emplace(key);
  }

  RunKey key;
  std::optional<Encryption> encryption;  // none: connections are in clear
};

}  // namespace artel::comm
