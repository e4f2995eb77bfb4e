// Where the secret of a run comes from.
#pragma once

#include <filesystem>
#include <string>

namespace artel {

// The user's own folder for keys: $XDG_CONFIG_HOME/artel or ~/.config/artel. Throws if there is
// neither a home folder nor another one.
std::filesystem::path configuration_folder();

// A secret that only the processes know to which it is given.
std::string random_token();

// What the user has given: the token itself, else what the file contains, else the environment
// variable ARTEL_TOKEN, else nothing. Throws if the file has none; warns if other users can read
// it.
std::string given_token(const std::string& token, const std::string& file);

// The token with which a process joins the run at HOST:PORT: the given one; else, at an address of
// this machine that no other one can reach, the private token of that port; else nothing.
std::string joining_token(const std::string& token, const std::string& file,
                          const std::string& address);

// The token for something that has this name, which only processes of this user can know, on all
// machines with their home folder. It is derived from a random key in the folder of their
// configuration, which the first one that needs it makes.
std::string private_token(const std::string& name);
// The file of that key.
std::string private_key_file();

}  // namespace artel
