// Checks the machines of `artel launch` before anything is started on them.
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
  std::string version;             // that the program must have
  double seconds = 5;              // until a silent host is given up
};

// What a host has, or why it cannot be used.
struct HostReport {
  std::string host;
  std::string problem;         // empty: the host can be used
  bool lacks_program = false;  // installing the program would help
  std::string program;         // its path
  std::string instructions;    // the best vector instructions of its processor
};

// What the program prints on a host when it is asked to describe itself (`artel launch
// --describe`).
std::string describe_program(const std::string& version, const std::string& instructions);

// Asks all hosts at once; takes `seconds` at most. In the order of `hosts`, each once.
std::vector<HostReport> check_hosts(const std::vector<std::string>& hosts,
                                    const HostCheckOptions& options);

// Understands the answer of one host.
HostReport report_of(const std::string& host, int exit_code, const std::string& output,
                     const HostCheckOptions& options);

// Copies this program to a host: to `options.program` if that is a path, else to ~/.local/bin.
// Returns the problem; empty: it is there now.
std::string install_program(const std::string& host, const HostCheckOptions& options);

// Names of hosts by instruction set: "n01, n02 have avx512, n03 has avx2"; empty if all are alike.
std::string different_instructions(const std::vector<HostReport>& reports);

}  // namespace artel
