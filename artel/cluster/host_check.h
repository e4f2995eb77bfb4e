// Checks the machines of `artel launch` before starting workers.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/base/time.h"

namespace artel {

struct HostCheckOptions {
  std::vector<std::string> shell;  // runs a line on a host: "ssh", "-o", "BatchMode=yes"
  std::string program = "artel";   // found on the host's PATH, else in ~/.local/bin
  std::string folder;              // to run in
  std::string version;             // required version of the program
  double seconds = 5;              // time limit for silent hosts
};

// The properties of a host, or the reason why it cannot be used.
struct HostReport {
  std::string host;
  std::string problem;         // empty if the host can be used
  bool lacks_program = false;  // true if installing the program would help
  std::string program;         // its path
  std::string instructions;    // the best vector instructions of its processor
  std::string build;           // identifies the build of its program; empty if unknown
};

// The output of `artel launch --describe` on a host.
std::string describe_program(const std::string& version, const std::string& instructions,
                             const std::string& build);

// Checks all hosts in parallel, within `seconds`. Returns one report per distinct host, in the
// order of `hosts`.
std::vector<HostReport> check_hosts(const std::vector<std::string>& hosts,
                                    const HostCheckOptions& options);

// Parses the answer of one host.
HostReport report_of(const std::string& host, int exit_code, const std::string& output,
                     const HostCheckOptions& options);

// Copies this program to a host: to `options.program` if that is a path, otherwise to ~/.local/bin.
// Returns the problem, or "" on success.
std::string install_program(const std::string& host, const HostCheckOptions& options);

// Names of hosts by a property, such as `instructions`: "n01, n02 have avx512, n03 has avx2"; empty
// if all are alike.
std::string different(std::string HostReport::*property, const std::vector<HostReport>& reports);

}  // namespace artel
