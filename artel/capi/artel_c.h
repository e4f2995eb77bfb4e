/* The C interface for using a trained network. Link with -lartel.
 *
 *   artel_model* model = artel_open("runs/mnist");
 *   if (!model) printf("%s\n", artel_last_error());
 *   float* scores = malloc(artel_output_size(model) * sizeof(float));
 *   artel_predict(model, pixels, 1, scores);
 *   artel_free(model);
 *
 * Use a model from one thread at a time. Several threads may use different models concurrently. The
 * library uses all cores and never ends the process. */
#ifndef ARTEL_CAPI_ARTEL_C_H_
#define ARTEL_CAPI_ARTEL_C_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct artel_model artel_model;

/* Opens a run by its folder (the newest checkpoint) or by one of its checkpoints. Returns NULL on
 * failure. */
artel_model* artel_open(const char* run);
/* Frees the model. Does nothing for NULL. */
void artel_free(artel_model* model);

/* Number of values in a sample, and in the network's output for a sample. */
int64_t artel_input_size(const artel_model* model);
int64_t artel_output_size(const artel_model* model);
/* 1 if samples are tokens, 0 if they are floats. */
int artel_takes_tokens(const artel_model* model);

/* Computes the outputs [rows, output size] for inputs [rows, input size] in the form that the
 * network was trained with: pictures as [channels, height, width] after scaling and normalisation,
 * tables as encoded columns, texts as tokens. Classifiers return scores before softmax. Returns 0,
 * or -1 on failure. */
int artel_predict(artel_model* model, const float* inputs, int64_t rows, float* outputs);
int artel_predict_tokens(artel_model* model, const int32_t* tokens, int64_t rows, float* outputs);

/* The message of the last failure in this thread, or "". Valid until the next failure. */
const char* artel_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
