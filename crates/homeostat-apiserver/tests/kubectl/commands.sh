# One command a line, run in this order on both servers. Empty lines and comments are for people.

# the cluster
kubectl cluster-info
kubectl version -o json | grep -v -e git -e build -e platform -e compiler -e goVersion -e '"major"' -e '"minor"'
kubectl api-versions | grep -v example.com
kubectl api-resources --api-group=apps
kubectl api-resources --namespaced=false --api-group=storage.k8s.io --verbs=list -o name
kubectl api-resources --categories=all -o name | grep -v example.com
kubectl get --raw /readyz
kubectl get --raw /livez/ping
kubectl get --raw '/livez?verbose'
kubectl get --raw '/readyz?verbose&exclude=etcd'
kubectl get --raw /nothing
kubectl get --raw /apis/apps/v1/namespaces/NS/deployments/nothing
kubectl auth whoami --as=jane --as-group=friends
kubectl auth can-i '*' '*'
kubectl auth can-i get pods --as=jane
kubectl auth can-i --list --as=jane
kubectl auth can-i get /metrics --as=jane
kubectl get pods --as=jane
kubectl get metrics.k8s.io

# creating
kubectl create namespace NS
kubectl create namespace NS
kubectl create serviceaccount default
kubectl apply -f manifests.yaml
kubectl apply -f manifests.yaml
kubectl apply -f bad.yaml
kubectl create -f bad.yaml --validate=false
kubectl create configmap literal --from-literal=a=1 --from-literal=b=2
kubectl create secret generic hidden --from-literal=p=w
kubectl create secret docker-registry reg --docker-username=u --docker-password=p
kubectl create quota small --hard=pods=10,services=5
kubectl create role reader --verb=get,list --resource=pods,deployments.apps
kubectl create rolebinding readers --role=reader --user=jane --serviceaccount=NS:default
kubectl create clusterrole NS-reader --verb=get --non-resource-url=/metrics
kubectl create job once --image=example.com/job:1 -- echo hello
kubectl create job from-cron --from=cronjob/nightly
kubectl create cronjob hourly --image=example.com/job:1 --schedule='0 * * * *'
kubectl create deployment made --image=example.com/made:1 --replicas=3 --port=80
kubectl create ingress made --rule='made.example.com/*=made:80'
kubectl create pdb made --selector=app=made --min-available=1
kubectl create priorityclass NS-high --value=1000 --description='above others'
kubectl create service clusterip plain --tcp=80:8080
kubectl create service nodeport open --tcp=80:8080 -o jsonpath='{.spec.type}'
kubectl create token default --duration=10m | tr -c . x | tr -s x
kubectl run naked --image=example.com/naked:1 --labels=app=naked --env=A=B
kubectl run dry --image=example.com/dry:1 --dry-run=server -o jsonpath='{.spec.restartPolicy}'
kubectl run dry --image=example.com/dry:1 --dry-run=client -o yaml
kubectl expose deployment made --port=80 --target-port=8080
kubectl autoscale deployment made --min=1 --max=5
kubectl auth can-i list pods --as=jane
kubectl auth can-i delete pods --as=jane
kubectl auth can-i list deployments.apps/scale --as=jane
kubectl get pods --as=jane -o name
kubectl delete pod naked --as=jane

# getting
kubectl get configmaps
kubectl get cm settings -o yaml
kubectl get cm settings -o json
kubectl get cm settings -o yaml --show-managed-fields
kubectl get deployments,services,cronjobs,ingresses -o wide
kubectl get pods -o wide
kubectl get pods --show-labels
kubectl get pods -L app,run
kubectl get all
kubectl get all -l run=RUN
kubectl get cm -A -l run=RUN
kubectl get cm,deploy,pods -A -l run=RUN -o name
kubectl get cm --sort-by=.metadata.name -o name
kubectl get pods --sort-by='{.metadata.name}' --no-headers
kubectl get pods --sort-by=.spec.containers[0].image
kubectl get pods --field-selector=metadata.name=naked
kubectl get pods --field-selector=status.phase=Pending,spec.nodeName= -o name
kubectl get pods --field-selector=spec.nothing=x
kubectl get pods -l 'app in (naked, web)' -o name
kubectl get pods -l 'app in ('
kubectl get cm --chunk-size=1 -o name
kubectl get cm settings literal nothing
kubectl get nothing
kubectl get cm/settings -o jsonpath='{.data.color}{"\n"}{.metadata.labels}{"\n"}'
kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.spec.containers[*].image}{"\n"}{end}'
kubectl get pods -o jsonpath='{.items[?(@.metadata.name=="naked")].spec.containers[0].env}'
kubectl get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image,NONE:.spec.nothing
kubectl get cm/settings -o go-template='{{range $k, $v := .data}}{{$k}}={{$v}};{{end}}'
kubectl get cm/settings -o template='{{.data.color}}'
kubectl get cm settings --output-watch-events -w --request-timeout=1 -o name
kubectl get cm settings -w --request-timeout=1
kubectl get pods -w --request-timeout=1 -o wide --output-watch-events
kubectl get resourcequota,limits,sa,role,rolebinding,pdb,hpa
kubectl get priorityclass NS-high
kubectl get clusterrole NS-reader -o jsonpath='{.rules}'
kubectl get events
kubectl events
kubectl get pod lonely -o jsonpath='{.status}'
kubectl get deploy web --subresource=scale -o yaml
kubectl get deploy web --subresource=status -o name
kubectl get componentstatuses -o name | sort
kubectl get componentstatuses etcd-0
kubectl get cs etcd-0 -o yaml
kubectl get cs nothing
kubectl get cs --field-selector=metadata.name=etcd-0
kubectl describe cs etcd-0
kubectl delete cs etcd-0

# describing
kubectl describe cm settings | sort
kubectl describe secret hidden
kubectl describe deployment web
kubectl describe service web
kubectl describe pod lonely
kubectl describe cronjob nightly
kubectl describe job once
kubectl describe ingress web
kubectl describe role reader
kubectl describe rolebinding readers
kubectl describe quota small
kubectl describe ns NS
kubectl describe pdb made
kubectl describe hpa made
kubectl describe sa default
kubectl describe priorityclass NS-high
kubectl describe cm nothing

# changing
kubectl label cm settings tier=two
kubectl label cm settings tier=two --overwrite
kubectl label cm settings tier=two
kubectl label cm settings tier-
kubectl label pods --all marked=yes
kubectl annotate cm settings note-
kubectl annotate cm settings 'bad key=x'
kubectl annotate cm settings a=b --resource-version=1
kubectl annotate deployment web kubernetes.io/change-cause='the first one'
kubectl patch cm settings -p '{"data":{"size":null,"shape":"round"}}'
kubectl patch cm settings -p '{"data":{"shape":"round"}}'
kubectl patch cm settings --type=merge -p '{"data":{"shape":"square"}}' --dry-run=server -o jsonpath='{.data}'
kubectl patch cm settings --type=json -p '[{"op":"test","path":"/data/shape","value":"square"}]'
kubectl patch cm settings --type=json -p '[{"op":"remove","path":"/data/nothing"}]'
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:1"}]}}}}'
kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"replicas":1}}' -o jsonpath='{.status.replicas}'
kubectl set image deployment/web web=example.com/web:2
kubectl set env deployment/web MOOD=fine
kubectl set env deployment/web --list
kubectl set resources deployment/web -c=web --limits=cpu=200m
kubectl set selector service web app=other
kubectl set serviceaccount deployment web default
kubectl set subject rolebinding readers --user=joe
kubectl scale deployment web --replicas=5
kubectl scale deployment web --current-replicas=4 --replicas=3
kubectl scale --replicas=0 deployment/web deployment/made
kubectl rollout history deployment/web
sed "s/OWNER/$(kubectl get deployment web -o jsonpath='{.metadata.uid}')/" revisions.yaml | kubectl create -f -
kubectl get replicasets -o wide
kubectl rollout history deployment/web
kubectl rollout history deployment/web --revision=2
kubectl rollout history deployment/web --revision=3
kubectl rollout undo deployment/web --to-revision=1 --dry-run=server
kubectl get events
kubectl get events -o wide --sort-by=.metadata.name
kubectl get events --field-selector=type=Warning -o name
kubectl get events.v1.events.k8s.io web.scaled -o yaml
kubectl events
kubectl events --for deployment/web --types=Warning
kubectl describe deployment web
kubectl delete replicasets --all
kubectl delete events --all
kubectl rollout restart deployment/web
kubectl rollout pause deployment/web
kubectl rollout pause deployment/web
kubectl rollout resume deployment/web
kubectl rollout undo deployment/web
kubectl rollout status deployment/web --watch=false
kubectl get cm settings -o yaml > copy.yaml; kubectl replace -f copy.yaml
sed -i 's/color: blue/color: red/' copy.yaml; kubectl replace -f copy.yaml
sed -i 's/color: red/color: grey/; s/resourceVersion: .*/resourceVersion: "1"/' copy.yaml; kubectl replace -f copy.yaml
kubectl replace --force -f copy.yaml
KUBE_EDITOR='sed -i s/grey/green/' kubectl edit cm settings
KUBE_EDITOR=true kubectl edit cm settings
kubectl get cm settings -o jsonpath='{.data}'
kubectl diff -f manifests.yaml | grep '^[+-] '
kubectl apply -f manifests.yaml
kubectl apply view-last-applied cm settings
kubectl apply --server-side -f manifests.yaml
kubectl apply --server-side --force-conflicts --field-manager=me -f manifests.yaml
kubectl apply --server-side --field-manager=you -f manifests.yaml
kubectl diff --server-side --force-conflicts -f manifests.yaml
kubectl wait cm/settings --for=jsonpath='{.data.color}'=blue --timeout=5s
kubectl wait deploy/web --for=condition=Available --timeout=1s
kubectl wait pod/nothing --for=delete --timeout=1s
kubectl wait pod/nothing --for=condition=Ready --timeout=1s

# explaining, and kinds of one's own
kubectl explain pods.spec.containers.resources
kubectl explain deployment --recursive
kubectl explain cronjob.spec.concurrencyPolicy
kubectl explain nothing
kubectl explain pods.spec.nothing
kubectl apply -f definition.yaml
kubectl wait crd/boats.RUN.example.com --for=condition=Established --timeout=30s
kubectl describe crd boats.RUN.example.com
kubectl apply -f boat.yaml
kubectl get boats
kubectl get bo -o wide
kubectl get fleet -o name
kubectl get boats --field-selector=spec.port=home -o name
kubectl get boats --field-selector=spec.port=away -o name
kubectl explain boats.spec
kubectl explain boats.spec --output=plaintext-openapiv2
kubectl scale boat first --replicas=4
kubectl patch boat first --type=merge -p '{"spec":{"sails":-1}}'
kubectl patch boat first --type=merge -p '{"spec":{"sail":1}}'
kubectl get boat first -o yaml --show-managed-fields
kubectl patch boat first -p '{"spec":{"sails":1}}'
kubectl describe boat first
kubectl api-resources --api-group=RUN.example.com

# nodes and certificates
kubectl get nodes -l run=RUN
kubectl cordon nothing
kubectl certificate approve nothing
kubectl top pods
kubectl logs lonely
kubectl logs lonely -c a
kubectl logs nothing
kubectl exec lonely -- true

# deleting
kubectl delete pod naked --now
kubectl delete pod naked
kubectl delete pod naked --ignore-not-found
kubectl delete cm literal --dry-run=server
kubectl delete cm literal --wait=false
kubectl delete cm -l tier=nothing
kubectl delete deployment made --cascade=orphan --wait=false
kubectl get deployment made -o jsonpath='{.metadata.finalizers}'
kubectl delete job once --cascade=background
kubectl delete cronjob hourly --cascade=foreground --wait=false
kubectl get cronjob hourly -o jsonpath='{.metadata.finalizers}'
kubectl delete -f boat.yaml
kubectl delete -f definition.yaml --timeout=30s
kubectl delete -f manifests.yaml --grace-period=0 --force
kubectl delete clusterrole NS-reader
kubectl delete priorityclass NS-high
kubectl get cm -o name
