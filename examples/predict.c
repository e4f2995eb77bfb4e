/* predict RUN: reads samples from standard input, as numbers, and writes the network's outputs. */
#include <artel/capi/artel_c.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** arguments) {
  artel_model* model = artel_open(count > 1 ? arguments[1] : "run");
  if (!model) return fprintf(stderr, "%s\n", artel_last_error()), 1;
  const int64_t inputs = artel_input_size(model), outputs = artel_output_size(model);
  float *x = malloc(inputs * sizeof(float)), *y = malloc(outputs * sizeof(float));
  int64_t read = 0;
  while (scanf("%f", x + read) == 1) {
    if (++read < inputs) continue;
    if (artel_predict(model, x, 1, y)) return fprintf(stderr, "%s\n", artel_last_error()), 1;
    for (int64_t i = 0; i < outputs; ++i) printf("%g%c", y[i], i + 1 < outputs ? ' ' : '\n');
    read = 0;
  }
  free(x), free(y), artel_free(model);
  return 0;
}
