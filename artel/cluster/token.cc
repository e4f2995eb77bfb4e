#include "artel/cluster/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/secret.h"
#include "artel/base/text.h"
#include "artel/comm/connection/file_handle.h"
#include "artel/comm/control/socket.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTokenBytes = 16, kKeyBytes = 32;

bool others_can_read(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

std::string read_token(const fs::path& file) {
  const std::string token(trim(read_file(file)));
  require(!token.empty(), ErrorKind::invalid_argument, "[{}] got an empty file, expected a token",
          file.string());
  return token;
}

// Creates the key. Safe when several processes, also on several machines, do so at the same time:
// all get the same key.
void make_key(const fs::path& key) {
  std::error_code ignored;  // opening the file reports the error
  fs::create_directories(key.parent_path(), ignored);
  fs::permissions(key.parent_path(), fs::perms::owner_all, ignored);
  std::string name = key.string() + ".XXXXXX";
  const comm::FileHandle file(::mkostemp(name.data(), O_CLOEXEC));
  require(file.get() >= 0, ErrorKind::io, "[{}] cannot be made: {}", name, std::strerror(errno));
  const std::string text = to_hex(random_bytes(kKeyBytes)) + "\n";
  const bool written =
      ::write(file.get(), text.data(), text.size()) == std::ssize(text) && ::fsync(file.get()) == 0;
  const bool linked = written && (::link(name.c_str(), key.c_str()) == 0 || errno == EEXIST);
  const int error = errno;
  ::unlink(name.c_str());
  require(linked, ErrorKind::io, "[{}] cannot be made: {}", key.string(), std::strerror(error));
}

}  // namespace

fs::path configuration_folder() {
  if (const char* given = std::getenv("XDG_CONFIG_HOME"); given != nullptr && *given != 0)
    return fs::path(given) / "artel";
  const char* home = std::getenv("HOME");
  require(
      home != nullptr && *home != 0, ErrorKind::not_found,
      "[token] no home folder to keep a key in; set the environment variable ARTEL_TOKEN to the "
      "same secret for all workers");
  return fs::path(home) / ".config" / "artel";
}

std::string random_token() { return to_hex(random_bytes(kTokenBytes)); }

std::string given_token(const std::string& token, const std::string& file) {
  if (!token.empty()) return token;
  if (!file.empty()) {
    if (others_can_read(file))
      log(LogLevel::warning, "[{}] other users of this machine can read the token; try chmod 600",
          file);
    return read_token(file);
  }
  const char* given = std::getenv("ARTEL_TOKEN");
  return given != nullptr ? given : "";
}

std::string joining_token(const std::string& token, const std::string& file,
                          const std::string& address) {
  std::string given = given_token(token, file);
  if (!given.empty()) return given;
  const comm::control::Endpoint place = comm::control::parse_endpoint(address);
  return is_loopback(place) ? private_token(fmt::format("run at port {}", place.port)) : "";
}

std::string private_key_file() { return configuration_folder() / "key"; }

std::string private_token(const std::string& name) {
  const fs::path key = private_key_file();
  if (!fs::exists(key)) make_key(key);
  require(!others_can_read(key), ErrorKind::invalid_argument,
          "[{}] other users of this machine can read this key; try chmod 600, or removing it",
          key.string());
  return to_hex(keyed_digest(read_token(key), name));
}

}  // namespace artel
