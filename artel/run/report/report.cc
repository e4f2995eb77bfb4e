#include "artel/run/report/report.h"

#include <algorithm>

#include "artel/base/disk.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/process.h"
#include "artel/base/text.h"
#include "artel/observe/loss_watch.h"
#include "artel/observe/terminal.h"
#include "artel/run/report/class_report.h"
#include "artel/run/report/curves.h"
#include "artel/run/report/server_report.h"

namespace artel {
namespace {

nlohmann::ordered_json to_json(const comm::control::Participant& worker) {
  const bool serves = worker.server >= 0;
  return {{serves ? "server" : "worker", serves ? worker.server : worker.number},
          {"host", worker.host},
          {"process", worker.process}};
}

nlohmann::ordered_json to_json(const ChangedWorkers& change) {
  nlohmann::ordered_json left = nlohmann::ordered_json::array(),
                         joined = nlohmann::ordered_json::array();
  for (const auto& [worker, why] : change.gone) {
    left.push_back(to_json(worker));
    left.back()["why"] = why;
  }
  for (const comm::control::Participant& worker : change.came) joined.push_back(to_json(worker));
  return {{"left", left},
          {"joined", joined},
          {"after_step", change.step},
          {"at_second", change.at},
          {"seconds_to_regroup", change.seconds},
          {"seconds_to_next_step", change.until_next_step},
          {"repeated_steps", change.repeated},
          {"went_on", change.staying}};
}

nlohmann::ordered_json to_json(const WorkerTraffic& traffic) {
  return {{"worker", traffic.worker},
          {"sent_bytes", traffic.all.sent_bytes},
          {"received_bytes", traffic.all.received_bytes},
          {"sent_messages", traffic.all.sent_messages},
          {"received_messages", traffic.all.received_messages},
          {"sent_to_other_hosts_bytes", traffic.between_hosts.sent_bytes},
          {"received_from_other_hosts_bytes", traffic.between_hosts.received_bytes}};
}

// The part of the waiting time that the wire needs; 0 if it cannot be determined.
double seconds_for_wire(const FitResult& result) {
  return std::min(result.seconds_for_wire.value_or(0), result.last.seconds_exchanging);
}

double seconds_for_workers(const FitResult& result) {
  return result.last.seconds_exchanging - seconds_for_wire(result);
}

// `judge` is the part that the network was evaluated on.
nlohmann::ordered_json summary(const FitResult& result, int64_t parameters,
                               const std::string& judge, const std::vector<std::string>& classes,
                               bool diverged) {
  const TrainingState& last = result.last;
  nlohmann::ordered_json json = {{"step", last.step},
                                 {"epoch", last.epoch},
                                 {"loss", last.loss},
                                 {"parameters", parameters},
                                 {"samples", last.samples},
                                 {"seconds", last.seconds},
                                 {"seconds_waiting_for_data", last.seconds_waited},
                                 {"seconds_waiting_for_workers", seconds_for_workers(result)},
                                 {"sent_bytes", last.sent_bytes},
                                 {"received_bytes", last.received_bytes},
                                 {"workers", last.workers},
                                 {"peak_memory_bytes", peak_memory_bytes()},
                                 {"stopped_by", result.stopped_by}};
  if (result.seconds_for_wire) json["seconds_waiting_for_the_wire"] = seconds_for_wire(result);
  if (last.lanes > 0) json["lanes"] = last.lanes;
  if (!last.device.empty())
    json["device"] = {{"name", last.device},
                      {"memory_bytes", last.device_use.memory},
                      {"busy_seconds", last.device_use.busy_seconds},
                      {"to_device_bytes", last.device_use.copied.to_device},
                      {"from_device_bytes", last.device_use.copied.from_device}};
  if (!last.exchange.algorithm.empty())
    json["exchange"] = {{"algorithm", last.exchange.algorithm},
                        {"reduction", last.exchange.reduction}};
  if (last.tested) {
    const TrainingState& epoch = result.epochs.back();
    json[judge + "_loss"] = epoch.test_loss;
    if (find_metric(epoch.test_metrics, "accuracy"))
      json[judge + "_accuracy"] = epoch.test_accuracy;
    json["tested_weights"] = epoch.averaged ? "averaged" : "trained";
    for (const MetricValue& metric : epoch.test_metrics)
      json[judge + "_metrics"][metric.name] = to_json(metric, classes);
  }
  if (diverged) json["diverged"] = true;
  if (!result.epochs.empty() && result.epochs.back().noise_scale)
    json["noise_scale"] = *result.epochs.back().noise_scale;
  if (const auto& best = result.best)
    json["best"] = {{"by", best->by},
                    {"on", last.tested ? judge : "train"},
                    {"value", best->value},
                    {"epoch", best->epoch},
                    {"step", best->step}};
  if (!result.links.empty()) json["links"] = result.links;
  for (const WorkerTraffic& traffic : result.traffic) json["traffic"].push_back(to_json(traffic));
  for (const ChangedWorkers& change : result.changes) json["changes"].push_back(to_json(change));
  for (const auto& [name, value] : last.measures) json[name] = value;
  add_server_report(json, result.servers);
  return json;
}

// "51.2 MiB", or "51.2 to 108 MiB" where some workers send more than others.
std::string sent_by_a_worker(const FitResult& result) {
  std::vector<int64_t> sent = {result.last.sent_bytes};
  for (const WorkerTraffic& traffic : result.traffic) sent.push_back(traffic.all.sent_bytes);
  const auto [least, most] = std::ranges::minmax(sent);
  return format_byte_range(static_cast<double>(least), static_cast<double>(most));
}

// 1, 2, 5, 10, 20, 50, ...: enough to see how it goes.
bool is_round(int64_t number) {
  while (number >= 10 && number % 10 == 0) number /= 10;
  return number == 1 || number == 2 || number == 5;
}

// "3 epochs", or "2.7 epochs" of a run that ends within one.
std::string epochs_text(const TrainingState& last) {
  if (last.steps_per_epoch == 0 || last.step % last.steps_per_epoch == 0)
    return counted(last.epoch, "epoch");
  return fmt::format("{:.1f} epochs",
                     static_cast<double>(last.step) / static_cast<double>(last.steps_per_epoch));
}

// ", accuracy 0.9132, top 5 0.9981".
std::string text_of(const std::vector<MetricValue>& metrics, std::string_view prefix) {
  std::string text;
  for (const MetricValue& metric : metrics)
    if (metric.single) text += fmt::format(", {}{} {:.4f}", prefix, metric.name, metric.value);
  return text;
}

void add_scalars(observe::Scalars& scalars, std::string_view part,
                 const std::vector<MetricValue>& metrics) {
  for (const MetricValue& metric : metrics)
    if (metric.single) scalars.emplace_back(fmt::format("{}/{}", part, metric.name), metric.value);
}

}  // namespace

std::string summary_text(const FitResult& result, int64_t parameters, std::string_view judge,
                         const std::vector<std::string>& classes, bool diverged) {
  return summary(result, parameters, std::string(judge), classes, diverged).dump(2) + "\n";
}

RunReport::RunReport(RunFolder folder, int64_t resumed_step, Part judge, bool quiet,
                     std::vector<std::string> classes, int64_t tokens)
    : folder_(std::move(folder)),
      resumed_step_(resumed_step),
      judge_(to_string(judge)),
      classes_(std::move(classes)),
      tokens_(tokens) {
  if (!quiet) progress_.emplace();
}

void RunReport::begin() {
  metrics_.emplace(folder_.path(), resumed_step_);
  std::filesystem::remove(folder_.failure());
}

// Logs write errors once, until a write succeeds again.
void RunReport::write(const std::function<void()>& work) {
  try {
    work();
    refused_ = false;
  } catch (const Error& error) {
    if (!is_disk_error(error)) throw;
    if (!refused_)
      log(LogLevel::warning, "{} ({}); training continues", error.what(),
          free_space_at(folder_.path()));
    refused_ = true;
  }
}

void RunReport::flush() {
  write([&] { metrics_->flush(); });
}

void RunReport::sync() {
  write([&] { metrics_->sync(); });
}

void RunReport::after_step(const TrainingState& state) {
  const auto shown = std::find_if(state.metrics.begin(), state.metrics.end(),
                                  [](const MetricValue& metric) { return metric.single; });
  const bool shows = shown != state.metrics.end();
  if (progress_)
    progress_->update({.epoch = state.epoch,
                       .epochs = state.epochs,
                       .step = state.step,
                       .steps = state.steps,
                       .samples = state.samples,
                       .tokens = tokens_,
                       .loss = state.loss,
                       .metric_name = shows ? shown->name : "",
                       .metric = shows ? shown->value : 0,
                       .forecast_seconds = state.forecast_seconds,
                       .ended_epochs = state.ended_epochs,
                       .seconds_between_epochs = state.seconds_between_epochs});
  observe::Scalars scalars = {{"train/loss", state.loss},
                              {"train/learning_rate", state.learning_rate}};
  for (const auto& [name, value] : state.measures) scalars.emplace_back("train/" + name, value);
  add_scalars(scalars, "train", state.metrics);
  if (state.gradient_norm) scalars.emplace_back("train/gradient_norm", *state.gradient_norm);
  if (state.noise) {
    scalars.emplace_back("train/gradient_variance", state.noise->variance);
    scalars.emplace_back("train/gradient_square", state.noise->square);
  }
  if (state.noise_scale) scalars.emplace_back("train/noise_scale", *state.noise_scale);
  if (std::exchange(workers_, state.workers) != state.workers && state.workers > 0)
    scalars.emplace_back("cluster/workers", state.workers);
  if (state.left > 0) scalars.emplace_back("cluster/left", state.left);
  if (state.joined > 0) scalars.emplace_back("cluster/joined", state.joined);
  if (state.repeated > 0)
    scalars.emplace_back("cluster/repeated", static_cast<double>(state.repeated));
  if (const int64_t sent = state.sent_bytes - std::exchange(sent_bytes_, state.sent_bytes);
      sent > 0)
    scalars.emplace_back("cluster/sent_bytes", static_cast<double>(sent));
  if (state.seconds_lost > 0) scalars.emplace_back("cluster/seconds_lost", state.seconds_lost);
  write([&] { metrics_->write(state.step, scalars); });
}

void RunReport::after_epoch(const TrainingState& state, bool prints) {
  // The epochs of a strategy that measures by itself are short: not each of them has a line.
  const bool shown = state.measures.empty() || state.tested || is_round(state.epoch);
  std::string line = fmt::format("epoch {}/{}: loss {:.4f}", state.epoch, state.epochs, state.loss);
  line += text_of(state.metrics, "");
  if (state.noise_scale) line += fmt::format(", noise scale {:.4g}", *state.noise_scale);
  observe::Scalars scalars;
  if (state.tested) {
    line += fmt::format(", {} loss {:.4f}", judge_, state.test_loss);
    line += text_of(state.test_metrics, judge_ + " ");
    scalars.emplace_back(judge_ + "/loss", state.test_loss);
    add_scalars(scalars, judge_, state.test_metrics);
  }
  for (const auto& [name, value] : state.measures) line += fmt::format(", {} {:.6g}", name, value);
  if (shown && prints) note(fmt::format("{}, {}", line, format_duration(state.seconds)));
  write([&] { metrics_->write(state.step, scalars); });
}

void RunReport::finish(const FitResult& result, int64_t parameters, const std::string& choices) {
  if (progress_) progress_->clear();
  const std::vector<MetricValue> tested =
      result.last.tested ? result.epochs.back().test_metrics : std::vector<MetricValue>();
  Curves curves;
  bool diverged = false;
  write([&] {
    metrics_->flush();
    curves = observe::read_metrics(folder_.path());
    if (const auto losses = curves.find("train/loss"); losses != curves.end())
      diverged = observe::has_diverged(losses->second.begin()->second, result.last.loss);
    if (const std::string svg = curves_svg(curves); !svg.empty())
      write_file_atomically(folder_.curves(), svg);
    write_file_atomically(folder_.choices(), choices);
    write_file_atomically(folder_.summary(),
                          summary_text(result, parameters, judge_, classes_, diverged));
    if (const std::string svg = confusion_svg(tested, classes_); !svg.empty())
      write_file_atomically(folder_.confusion(), svg);
  });
  if (diverged)
    log(LogLevel::warning,
        "the training has diverged: the loss is {:.4g}, far above that of the first step; the "
        "result is useless; try a lower learning rate or train.clip_norm",
        result.last.loss);
  if (!progress_) return;
  if (observe::is_terminal(stdout))
    fmt::print("{}",
               curves_text(curves, observe::terminal_width(stdout), observe::speaks_unicode()));
  fmt::print("{}{}", table_of(result, parameters).text(), text_of_details(tested, classes_));
  std::fflush(stdout);
}

observe::Table RunReport::table_of(const FitResult& result, int64_t parameters) const {
  const TrainingState& last = result.last;
  observe::Table table({"result", ""});
  if (last.tested) {
    const TrainingState& epoch = result.epochs.back();
    for (const MetricValue& metric : epoch.test_metrics)
      if (metric.single)
        table.add({fmt::format("{} {}", judge_, metric.name), fmt::format("{:.4f}", metric.value)});
    table.add({judge_ + " loss", fmt::format("{:.4f}", epoch.test_loss)});
    if (epoch.averaged) table.add({"weights of the " + judge_, "averaged"});
  }
  if (const auto& best = result.best)
    table.add({fmt::format("best {} {}", last.tested ? judge_ : "training", best->by),
               fmt::format("{:.4f}{}{}", best->value,
                           best->epoch > 0 ? fmt::format(" after epoch {}", best->epoch) : "",
                           best->step < last.step ? "; use it with --best" : "")});
  table.add({"training loss", fmt::format("{:.4f}", last.loss)});
  for (const auto& [name, value] : last.measures) table.add({name, fmt::format("{:.10g}", value)});
  table.add({"steps", fmt::format("{} ({})", format_count(last.step), epochs_text(last))});
  table.add({"parameters", format_count(parameters)});
  if (last.lanes > 0) table.add({"lanes", format_count(last.lanes)});
  table.add({"time", format_duration(last.seconds)});
  if (last.seconds > 0) {
    const double rate = static_cast<double>(last.samples) / last.seconds;
    table.add({"speed", fmt::format("{} samples/s", observe::rate_text(rate))});
    if (tokens_ > 0)
      table.add({"", fmt::format("{} tokens/s",
                                 observe::rate_text(rate * static_cast<double>(tokens_)))});
    table.add(
        {"waiting for data", fmt::format("{:.1f} %", 100 * last.seconds_waited / last.seconds)});
  }
  if (last.sent_bytes > 0) {
    table.add({"waiting for workers",
               fmt::format("{:.1f} %", 100 * seconds_for_workers(result) / last.seconds)});
    if (result.seconds_for_wire)
      table.add({"waiting for the wire",
                 fmt::format("{:.1f} %", 100 * seconds_for_wire(result) / last.seconds)});
    table.add({"sent by a worker", sent_by_a_worker(result)});
  }
  add_server_report(table, result.servers);
  for (const ChangedWorkers& change : result.changes) {
    for (const auto& [worker, why] : change.gone)
      table.add({name_of(worker),
                 fmt::format("{} after step {}; the others continued after {:.2f} s{}", why,
                             format_count(change.step), change.seconds,
                             change.repeated > 0
                                 ? fmt::format(" and repeated {}", counted(change.repeated, "step"))
                                 : "")});
    for (const comm::control::Participant& worker : change.came)
      table.add({name_of(worker), fmt::format("joined after step {}; the others waited {:.2f} s",
                                              format_count(change.step), change.seconds)});
  }
  table.add({"stopped by", result.stopped_at.empty()
                               ? result.stopped_by
                               : fmt::format("{} of {}", result.stopped_by, result.stopped_at)});
  table.add({"folder", folder_.path().string()});
  return table;
}

}  // namespace artel
