#include "artel/dashboard/client.h"

#include <httplib.h>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::dashboard {
namespace {

nlohmann::json ask(httplib::Client& client, const std::string& address, const std::string& token,
                   const std::string& path) {
  httplib::Headers headers;
  if (!token.empty()) headers.emplace("Authorization", "Bearer " + token);
  const httplib::Result answer = client.Get(path, headers);
  require(static_cast<bool>(answer), ErrorKind::communication,
          "[{}] no dashboard answers there ({}); `artel dashboard` starts one", address,
          httplib::to_string(answer.error()));
  require(answer->status == 200,
          answer->status == 404 ? ErrorKind::not_found : ErrorKind::communication, "[{}] {}",
          address, answer->body.substr(0, answer->body.find('\n')));
  return parse_json(answer->body, address);
}

// The newest run in progress.
std::string running(const nlohmann::json& answer, const std::string& address) {
  std::string name;
  double begun = -1;
  for (const auto& run : answer.at("runs")) {
    if (run.at("status") != "running" || run.at("begun") <= begun) continue;
    name = run.at("name");
    begun = run.at("begun");
  }
  require(!name.empty(), ErrorKind::not_found, "[{}] no run is being trained there", address);
  return name;
}

}  // namespace

RemoteRun look_at(const Remote& dashboard, const std::string& run) {
  const auto& [address, token, certificate] = dashboard;
  httplib::Client client(address.find("://") == address.npos ? "http://" + address : address);
  if (!certificate.empty()) client.set_ca_cert_path(certificate.string());
  client.set_connection_timeout(3);
  client.set_read_timeout(5);
  try {
    RemoteRun remote = {
        run.empty() ? running(ask(client, address, token, "/api/runs"), address) : run, {}};
    const nlohmann::json answer = ask(
        client, address, token, httplib::append_query_params("/api/live", {{"run", remote.name}}));
    remote.view = {.status = run_status(answer.at("status").get<std::string>()),
                   .remark = answer.at("remark"),
                   .run = {}};
    if (answer.contains("live"))
      remote.view.run = observe::live_from_json(answer.at("live").dump(), address);
    return remote;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] is not a dashboard of artel: {}", address, error.what());
  }
}

}  // namespace artel::dashboard
