// Sources of a run's token.
#pragma once

#include <filesystem>
#include <string>

namespace artel {

// The user's configuration folder: $XDG_CONFIG_HOME/artel or ~/.config/artel. Throws if neither is
// set.
std::filesystem::path configuration_folder();

// A random token.
std::string random_token();

// The user's token: the argument, the content of the file, or the environment variable ARTEL_TOKEN,
// in this order; empty if none is given. Throws if the file is empty; warns if other users can read
// it.
std::string given_token(const std::string& token, const std::string& file);

// The token for joining the run at HOST:PORT: the given one, or, at a loopback address, the private
// token of that port; otherwise empty.
std::string joining_token(const std::string& token, const std::string& file,
                          const std::string& address);

// A token for this name, known only to processes of this user, on all machines that share the home
// folder. Derived from a random key in the configuration folder, which is created on first use.
std::string private_token(const std::string& name);
// The file of that key.
std::string private_key_file();

}  // namespace artel
