// The secret that protects the connections of a run.
#pragma once

#include <optional>
#include <string_view>

#include "artel/comm/connection/encryption.h"
#include "artel/comm/connection/handshake.h"

namespace artel::comm {

struct RunSecret {
  explicit RunSecret(std::string_view token, bool encrypt = false) : key(token) {
    if (encrypt) encryption.emplace(key);
  }

  RunKey key;
  std::optional<Encryption> encryption;  // empty without encryption
};

}  // namespace artel::comm
