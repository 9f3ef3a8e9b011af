{{- /* Name of everything in this release. */ -}}
{{- define "kinora.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Labels that select pods: dict "root" $ "component" NAME. */ -}}
{{- define "kinora.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "kinora.labels" -}}
{{ include "kinora.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "kinora.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* The stores. */ -}}
{{- define "kinora.storeEnv" -}}
- name: KINORA_STORE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.store.secretName }}, key: {{ .Values.store.secretKey }}}}
- name: KINORA_RESULTS_URL
  value: {{ .Values.results.url | quote }}
- name: KINORA_RESULTS_DELIVERY
  value: {{ .Values.results.delivery | quote }}
{{- with .Values.results.s3 }}
- name: KINORA_RESULTS_S3_ENDPOINT
  value: {{ .endpoint | quote }}
- name: KINORA_RESULTS_S3_PUBLIC_ENDPOINT
  value: {{ .publicEndpoint | quote }}
- name: KINORA_RESULTS_S3_REGION
  value: {{ .region | quote }}
- name: KINORA_RESULTS_S3_PATH_STYLE
  value: {{ .pathStyle | quote }}
- name: KINORA_RESULTS_S3_ALLOW_HTTP
  value: {{ .allowHttp | quote }}
{{- if .secretName }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: access-key-id}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: secret-access-key}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Variables of all processes. */ -}}
{{- define "kinora.env" -}}
{{ include "kinora.storeEnv" . }}
- name: KINORA_BASE_URL
  value: {{ .Values.baseUrl | quote }}
# A folder inside the volume, which the service makes and closes to others: the volume's own folder is root's.
- name: KINORA_DATA
  value: /var/lib/kinora/data
- name: KINORA_LOG_FORMAT
  value: json
{{- with .Values.metrics.port }}
- name: KINORA_METRICS_LISTEN
  value: {{ printf "0.0.0.0:%d" (int .) | quote }}
{{- end }}
{{- end -}}

{{- /* The listener that kinora.env sets. */ -}}
{{- define "kinora.metricsPort" -}}
{{- with .Values.metrics.port }}
- {name: metrics, containerPort: {{ int . }}}
{{- end }}
{{- end -}}

{{- define "kinora.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
# Also permits the sandbox of child processes: Landlock and seccomp.
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "kinora.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Fields of every pod of the service: dict "root" $ "component" NAME. */ -}}
{{- define "kinora.pod" -}}
serviceAccountName: {{ include "kinora.fullname" .root }}
automountServiceAccountToken: false
# Kubernetes would otherwise set a variable for each port of the Service `kinora`, which Kinora takes for a setting
# that it does not know.
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kinora.selectorLabels" . | nindent 8 }}
{{- end -}}

{{- /* Probes of a container whose health is on the port named "health". */ -}}
{{- define "kinora.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: {{ . }}, port: health}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}
