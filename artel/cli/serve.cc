#include <CLI/CLI.hpp>
#include <memory>

#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/cluster.h"
#include "artel/cluster/token.h"
#include "artel/comm/transports/transports.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string join, token, token_file, interface;
  int workers = 1, servers = 1, number = -1;
  bool encrypt = false;
  std::string transport = "gloo";
};

void serve(const Arguments& arguments) {
  constexpr int kAnyServer = -2;
  Cluster cluster(comm::GroupOptions{
      .transport = arguments.transport,
      .rank = arguments.number < 0 ? kAnyServer : arguments.workers + arguments.number,
      .size = arguments.workers + arguments.servers,
      .address = arguments.join,
      .token = joining_token(arguments.token, arguments.token_file, arguments.join),
      .encrypt = arguments.encrypt,
      .interface = arguments.interface,
      .servers = arguments.servers});
  println("serving {}", counted(arguments.workers, "worker"));
  cluster.serve();
  println("all workers have left");
}

// The transports whose ranks meet at an address.
std::vector<std::string> with_address() {
  std::vector<std::string> names;
  for (const comm::TransportDefinition* transport : comm::transports())
    if (transport->meeting == comm::Meeting::address) names.push_back(transport->name);
  return names;
}

}  // namespace

void add_serve(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("serve", "Run a parameter server of a run on several machines");
  command->add_option("--join", arguments->join, "Address of worker 0")
      ->type_name("HOST:PORT")
      ->required();
  command->add_option("-n,--workers", arguments->workers, "Workers of the run")
      ->required()
      ->check(CLI::Range(1, 4096));
  command->add_option("--servers", arguments->servers, "Servers of the run")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--number", arguments->number,
                      "Number of this server, from 0 (default: in the order of arrival)");
  add_token(command, arguments->token, arguments->token_file, "A secret shared by all");
  command->add_flag("--encrypt", arguments->encrypt, "For a run with cluster.encrypt = true");
  command->add_option("--transport", arguments->transport, "cluster.transport of the run")
      ->capture_default_str()
      ->check(CLI::IsMember(with_address()));
  command->add_option("--interface", arguments->interface, "Network interface to use");
  command->footer(
      "A server needs neither the data nor the configuration: it gets everything from worker 0.\n\n"
      "Example: two workers and a server, on three machines that share this folder\n"
      "  n01$ (umask 077; openssl rand -hex 32 >secret)\n"
      "  n01$ artel train mnist.toml -n 2 --servers 1 --join n01:29400 --token-file secret\n"
      "  n02$ artel train mnist.toml -n 2 --servers 1 --join n01:29400 --token-file secret\n"
      "  n03$ artel serve -n 2 --servers 1 --join n01:29400 --token-file secret");
  command->callback([arguments] { serve(*arguments); });
}

}  // namespace artel::cli
