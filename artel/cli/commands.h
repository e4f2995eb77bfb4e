// The commands of the program: arguments, help with examples, and action.
#pragma once

namespace CLI {
class App;
}

namespace artel::cli {

void add_init(CLI::App& program);
void add_train(CLI::App& program);
void add_evaluate(CLI::App& program);
void add_predict(CLI::App& program);
void add_generate(CLI::App& program);
void add_embed(CLI::App& program);
void add_features(CLI::App& program);
void add_fit(CLI::App& program);
void add_finetune(CLI::App& program);
void add_advise(CLI::App& program);
void add_pretrain(CLI::App& program);
void add_probe(CLI::App& program);
void add_adapters(CLI::App& program);
void add_quantise(CLI::App& program);
void add_distil(CLI::App& program);
void add_prune(CLI::App& program);
void add_shrink(CLI::App& program);
void add_info(CLI::App& program);
void add_data(CLI::App& program);
void add_models(CLI::App& program);
void add_search(CLI::App& program);
void add_comm(CLI::App& program);
void add_bench(CLI::App& program);
void add_config(CLI::App& program);
void add_verify(CLI::App& program);
void add_compare(CLI::App& program);
void add_sweep(CLI::App& program);
void add_launch(CLI::App& program);
void add_leave(CLI::App& program);
void add_serve(CLI::App& program);
void add_devices(CLI::App& program);
void add_plan(CLI::App& program);
void add_simulate(CLI::App& program);
void add_runs(CLI::App& program);
void add_top(CLI::App& program);
void add_trace(CLI::App& program);
void add_export(CLI::App& program);
void add_dashboard(CLI::App& program);

}  // namespace artel::cli
